"""Formats the spec fields of a LeaderWorkerSet for its description. Pure.

The fields are derived from the field table. Fields without a title are shown with their name.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api import schema
from leaderworkerset.api.fieldtypes import TYPES
from leaderworkerset.api.policytypes import SubdomainPolicy

ROOT: Final = "LeaderWorkerSetSpec"
ROLLOUT: Final = "rolloutStrategy.rollingUpdateConfiguration"

TITLES: Final[Mapping[str, str]] = {
    "startupPolicy": "Startup",
    "leaderWorkerTemplate.restartPolicy": "Restart",
    "leaderWorkerTemplate.maxGroupRestarts": "Maximum restarts",
    "rolloutStrategy.type": "Strategy",
    ROLLOUT: "Rollout",
    "networkConfig.subdomainPolicy": "Network",
    "leaderWorkerTemplate.subGroupPolicy": "Subgroups",
    "groupIdentity": "Identity",
    "groupReplacementPolicy": "Replacement",
    "podTerminationPolicy": "Termination",
    "scheduling": "Scheduling",
    "leaderWorkerTemplate.volumeClaimTemplates": "Claims",
    "leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy": "Claim retention",
}
"""Titles by path. A structure with a title is shown in one line. Lines with a title are first, in this order."""

ELSEWHERE: Final = {
    "replicas": "Groups",
    "leaderWorkerTemplate.size": "Size",
    "leaderWorkerTemplate.leaderTemplate": "Leader",
    "leaderWorkerTemplate.workerTemplate": "Worker",
}
"""Fields that are shown in other lines of the description."""

WITHOUT_SCHEMA: Final = {"networkConfig.subdomainPolicy": SubdomainPolicy.SHARED.value}
"""Defaults that the schema does not contain."""


def facts(spec: JSONObject) -> list[tuple[str, str]]:
    """Return the titles and values of fields that a spec sets or that have a default."""
    values = dict(_values(ROOT, spec))
    order = sorted(values, key=lambda path: [*TITLES].index(path) if path in TITLES else len(TITLES))
    return [(TITLES.get(path, path.rpartition(".")[2]), values[path]) for path in order]


def rollout(spec: JSONObject) -> str:
    """Return a description of the rollout limits.

    >>> rollout({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1}}})
    'maxSurge 1'
    """
    bounds = (spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    return text(_in_order("RollingUpdateConfiguration", bounds))


def _values(struct: str, value: JSONObject, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths in a structure that have separate lines, and their values."""
    for name, field in TYPES.fields(struct).items():
        path = f"{prefix}{name}"
        if path in ELSEWHERE:
            continue
        own = value.get(name)
        if field.shape == "struct" and path not in TITLES:
            yield from _values(field.type, own or {}, f"{path}.")
            continue
        default = schema.RULES.get((struct, name), {}).get("default", WITHOUT_SCHEMA.get(path))
        if isinstance(own, dict):
            own = _in_order(field.type, own)
        if words := text(default if own is None else own):
            yield path, words


def _in_order(struct: str, value: JSONObject) -> JSONObject:
    """Return a structure with its fields in the order of the table."""
    return {name: value[name] for name in (*TYPES.fields(struct), *value) if name in value}


def text(value: JSON) -> str:
    """Return a value in one line, with the names of named objects and all fields of other objects.

    >>> text({"gang": {"minCount": 2}, "basic": {}}), text([{"metadata": {"name": "data"}}]), text(None)
    ('gang minCount 2, basic', 'data', '')
    """
    match value:
        case None:
            return ""
        case {"metadata": {"name": name}}:
            return str(name)
        case dict():
            return ", ".join(f"{name} {text(item)}".rstrip() for name, item in value.items() if item is not None)
        case list():
            return ", ".join(map(text, value))
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)
