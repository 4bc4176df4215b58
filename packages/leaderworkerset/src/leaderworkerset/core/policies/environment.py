"""Sets the environment variables that identify the group (`LWS_LEADER_ADDRESS` and others, R-ENV-1 to R-ENV-5).

The three variables of the contract are the first in every container, and override the user's variables.
`LWS_GROUP_INDEX` follows them, unless the user has set it.
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.policies.celmutations import (
    PodRule,
    add,
    annotation,
    conditional_patches,
    label,
    list_literal,
    remove,
    string_literal,
)
from leaderworkerset.core.policies.podedits import CONTAINERS, environment, with_each_container
from leaderworkerset.core.policies.policy import DeniedError, Member, Policy


def inject(pod: JSONObject) -> JSONObject:
    """Return the pod with the environment variables in every container and init container."""
    variables = build_variables(pod)
    return with_each_container(pod, lambda container: _prepend(container, variables))


def build_variables(pod: JSONObject) -> dict[str, str]:
    """Return the names and values in order. Deny the pod if a label or annotation is missing (R-ENV-2, R-ENV-5)."""
    own, annotations = meta.labels(pod), meta.annotations(pod)
    name = _required_value(pod, own, labels.NAME, "name label")
    group_index = _required_value(pod, own, labels.GROUP_INDEX, "group index label")
    size = _required_value(pod, annotations, labels.SIZE, "size annotation")
    worker_index = _required_value(pod, own, labels.WORKER_INDEX, "worker index label")
    host = (
        groupname.hostname(pod)
        if groupname.has_random_key(pod) and worker_index == labels.LEADER_WORKER_INDEX
        else f"{name}-{group_index}"
    )
    subdomain = meta.spec(pod).get("subdomain") or ""
    address = annotations.get(labels.LEADER_ADDRESS) or f"{host}.{subdomain}.{meta.namespace(pod)}"
    return {
        labels.ENV_LEADER_ADDRESS: address,
        labels.ENV_GROUP_SIZE: size,
        labels.ENV_WORKER_INDEX: worker_index,
        labels.ENV_GROUP_INDEX: group_index,
    }


def _required_value(pod: JSONObject, values: dict[str, str], key: str, what: str) -> str:
    if key not in values:
        raise DeniedError(f"Failure constructing environment variables, no {what} found for pod {meta.key(pod)}")
    return values[key]


def _prepend(container: JSONObject, variables: dict[str, str]) -> JSONObject:
    """Insert the variables first. If a user set a name several times, preserve the first value (R-ENV-3)."""
    own: dict[str, JSONObject] = {}
    for entry in environment(container):
        own.setdefault(entry.get("name", ""), entry)
    injected = {
        name: {"name": name, "value": value}
        for name, value in variables.items()
        if name != labels.ENV_GROUP_INDEX or name not in own
    }
    kept = [entry for name, entry in own.items() if name not in injected]
    return container | {"env": [*injected.values(), *kept]}


def admit(pod: JSONObject, _member: Member) -> JSONObject:
    """Return the pod with the environment variables for its group."""
    return inject(pod)


FIRST: Final = (labels.ENV_LEADER_ADDRESS, labels.ENV_GROUP_SIZE, labels.ENV_WORKER_INDEX)
"""The variables that override user variables."""

_VALUES: Final = {
    labels.ENV_LEADER_ADDRESS: "variables.leaderAddress",
    labels.ENV_GROUP_SIZE: annotation(labels.SIZE),
    labels.ENV_WORKER_INDEX: "variables.workerIndex",
}
_ENVIRONMENT: Final = "container.?env.orValue([])"


def _entry(name: str, value: str) -> str:
    return f'{{"name": {string_literal(name)}, "value": {value}}}'


def _patches_rule(part: str) -> str:
    """Return the patches for all containers in one spec field.

    They remove and insert single variables: Kubernetes 1.37 cannot put the user's variables into a patch.
    """
    path = f"{string_literal(f'/spec/{part}/')} + string(index) + {string_literal('/env')}"
    first, other = f"{path} + {string_literal('/0')}", f"{path} + {string_literal('/')} + string(at)"
    has_own = f"{_ENVIRONMENT}.exists(entry, entry.name == {string_literal(labels.ENV_GROUP_INDEX)})"
    overridden = (
        f"lists.range(size({_ENVIRONMENT})).reverse().filter(at, container.env[at].name in {list_literal(FIRST)})"
    )
    patches = [
        conditional_patches("!has(container.env)", add(path, "[]")),
        f"{overridden}.map(at, {remove(other)})",
        conditional_patches(f"!{has_own}", add(first, _entry(labels.ENV_GROUP_INDEX, "variables.groupIndex"))),
        f"variables.environment.reverse().map(entry, {add(first, 'entry')})",
    ]
    return f"object.spec.?{part}.orValue([]).transformList(index, container, {' + '.join(patches)}).flatten()"


RULE: Final = PodRule(
    conditions={
        # If several variables have the same name, the webhook preserves the first.
        f"variables-are-distinct-in-{part.lower()}": f"object.spec.?{part}.orValue([]).all(container,"
        f" size({_ENVIRONMENT}) == size({_ENVIRONMENT}.map(entry, entry.name).distinct()))"
        for part in CONTAINERS
    },
    variables={
        "leaderAddress": f'{annotation(labels.LEADER_ADDRESS)} != "" ? {annotation(labels.LEADER_ADDRESS)}'
        f' : {label(labels.NAME)} + "-" + variables.groupIndex + "." + variables.subdomain + "." + request.namespace',
        "environment": f"[{', '.join(_entry(name, value) for name, value in _VALUES.items())}]",
    },
    patches=tuple(map(_patches_rule, CONTAINERS)),
)

POLICY: Final = Policy(admit=admit, rule=RULE)
