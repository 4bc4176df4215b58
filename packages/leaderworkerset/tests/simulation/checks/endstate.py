"""Compares the end state of a schedule with the end state of a new set, and finds leftover objects."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from tests.simulation.checks.facts import FOREIGN, TOUCHED, Facts
from tests.simulation.schedules.podgroups import POD_GROUPS, WORKLOADS
from tests.simulation.states import comparable

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, REPLICA_SETS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS, OF_STATEFULSETS

UNCOMPARED: Final = {one.group_resource for one in (REPLICA_SETS, WORKLOADS, POD_GROUPS)}
"""ReplicaSets depend on earlier changes. `gangs.py` checks the other two kinds in a stable state."""

KEPT: Final = ("apiVersion", "kind", "spec")
"""The fields of a Deployment that the controllers set."""

HISTORICAL: Final = {"collisionCount", "restartCount", "lastState", "revision", "deletionGracePeriodSeconds", "containerID",
                     labels.IN_PLACE, labels.IN_PLACE_REVISION, labels.IN_PLACE_STATEFULSET_REVISION, labels.IN_PLACE_BEFORE,
                     labels.RESTARTED_IN_PLACE,
                     labels.REPLACES, labels.GROUP_RESTART_COUNTS, TOUCHED}  # fmt: skip
"""The fields that depend on earlier changes."""


def declared(facts: Facts) -> JSONObject | None:
    """Return the manifest that a user would apply to create the current LeaderWorkerSet."""
    (lws,) = facts.objects.get(LEADERWORKERSETS.group_resource, {}).values() or (None,)
    if lws is None:
        return None
    metadata = {name: lws["metadata"][name] for name in ("name", "namespace", "labels", "annotations")
                if lws["metadata"].get(name)}  # fmt: skip
    declared = {field: lws[field] for field in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
    return {field: _without_history(value) for field, value in declared.items()}


def final(facts: Facts) -> dict[str, JSONObject]:
    """Return all relevant objects, without fields that differ between runs, under names without numbers."""
    found: dict[str, JSONObject] = {}
    for resource, objects in facts.objects.items():
        for name, obj in objects.items():
            if not _is_historical(resource, obj) and FOREIGN not in meta.annotations(obj):
                found[f"{obj['kind']} {_timeless_name(resource, name)}"] = _normal(resource, obj)
    return _with_numbers(facts, found)


def _with_numbers(facts: Facts, found: dict[str, JSONObject]) -> dict[str, JSONObject]:
    """Return the objects, with numbers instead of the random group keys and the names derived from them."""
    text, sets = encode(found).decode(), facts.objects.get(STATEFULSETS.group_resource, {})
    for number, group in enumerate(sorted(facts.groups().values(), key=lambda one: meta.name(one.leader))):
        if isinstance(group.index, str):
            host = f"{meta.labels(group.leader)[labels.NAME]}-{group.index[:8]}"
            of_workers = meta.status(sets.get(host) or {}).get("updateRevision")
            random = (of_workers, group.index, meta.name(group.leader), host)
            for name, kind in zip(random, ("revision", "key", "leader", "host"), strict=True):
                text = text.replace(name, f"{kind}-{number}") if name else text
    for name, new in _names_of_gangs(facts):
        text = text.replace(name, new)
    for replicaset in facts.objects.get(REPLICA_SETS.group_resource, {}).values():
        text = text.replace(meta.labels(replicaset)["pod-template-hash"], "template")
    decoded: dict[str, JSONObject] = msgspec.json.decode(text)
    return decoded


def _names_of_gangs(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the names derived from the UID of a LeaderWorkerSet with Workloads, and their replacements."""
    workloads = facts.objects.get(WORKLOADS.group_resource, {})
    for group in facts.groups().values() if workloads else ():
        annotated = meta.annotations(group.leader).get(labels.WORKLOAD_NAME, "")
        if annotated not in workloads:
            yield annotated, f"workload.{group.index}"
    for name in workloads:
        yield name, "workload"
    for name, one in facts.objects.get(STATEFULSETS.group_resource, {}).items() if workloads else ():
        for which in ("updateRevision", "currentRevision"):
            yield meta.status(one).get(which) or name, f"revision of {name}"


def leftovers(facts: Facts) -> list[str]:
    """Assign a name to every existing object except foreign ones."""
    return [f"{obj['kind']} {name}" for objects in facts.objects.values() for name, obj in sorted(objects.items())
            if FOREIGN not in meta.annotations(obj)]  # fmt: skip


def encode(value: Any) -> bytes:
    """Encode a value so that equal values have equal bytes."""
    return msgspec.json.encode(value, order="sorted")


def _is_historical(resource: str, obj: JSONObject) -> bool:
    """Return whether an object is excluded from the comparison.

    Records of earlier changes and objects that other checks cover, such as StatefulSet revisions, are excluded.
    """
    if resource in UNCOMPARED:
        return True
    if resource != CONTROLLER_REVISIONS.group_resource:
        return False
    return OF_STATEFULSETS in meta.labels(obj) or labels.TEMPLATE_REVISION_HASH not in meta.labels(obj)


def _timeless_name(resource: str, name: str) -> str:
    """Return the name of an object, without the number if it is a revision."""
    return name.rpartition("-")[0] if resource == CONTROLLER_REVISIONS.group_resource else name


def _normal(resource: str, obj: JSONObject) -> JSONObject:
    cleaned: JSONObject = _without_history(comparable(obj))
    if resource == DEPLOYMENTS.group_resource:
        return {name: cleaned[name] for name in KEPT}
    if resource == CONTROLLER_REVISIONS.group_resource:
        cleaned["metadata"].pop("name")
    status = cleaned.get("status") or {}
    if "conditions" in status:
        holding = [one for one in status["conditions"] if one["status"] != "False"]
        cleaned["status"] = status | {"conditions": holding}
    return cleaned


def _without_history(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_history(one) for one in value]
    if isinstance(value, dict):
        found = {name: _without_history(field) for name, field in value.items() if name not in HISTORICAL}
        return {name: field for name, field in found.items() if field or name != "annotations"}
    return value
