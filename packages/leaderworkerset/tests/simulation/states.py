"""Compares the states of clusters without the fields that differ between two equivalent runs."""

from collections.abc import Mapping
from typing import Any, Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS

OBSERVED: Final = (
    DISAGGREGATED_SETS, ROLE_SCALERS, LEADERWORKERSETS, STATEFULSETS, PODS, SERVICES, CONTROLLER_REVISIONS,
)  # fmt: skip

VARYING: Final = frozenset(
    {
        "uid", "resourceVersion", "generation", "observedGeneration", "managedFields", "creationTimestamp",
        "lastTransitionTime", "lastProbeTime", "startTime", "startedAt", "finishedAt", "time",
        labels.RECREATED_LEADER, labels.RECREATE_AFTER, labels.FAILED_POD_UID, labels.FAILURE, labels.LONGEST_FAILED_RUN,
        "nodeName", "podIP", "podIPs", "hostIP", "hostIPs", "containerID", "clusterIP", "clusterIPs",
    }
)  # fmt: skip
"""The fields that contain times, counters or random values."""


def comparable(value: Any) -> Any:
    """Return a value without the variable fields and with conditions sorted by type."""
    if isinstance(value, list):
        cleaned = [comparable(one) for one in value]
        are_conditions = all(isinstance(one, dict) and {"type", "status"} <= one.keys() for one in cleaned)
        return sorted(cleaned, key=lambda one: str(one["type"])) if are_conditions else cleaned
    if isinstance(value, dict):
        return {name: comparable(field) for name, field in value.items() if name not in VARYING}
    return value


def differences(one: dict[str, JSONObject], other: dict[str, JSONObject]) -> list[str]:
    """List the objects and fields that differ between two states."""
    found = [f"{name} is in one state only" for name in sorted(one.keys() ^ other.keys())]
    for name in sorted(one.keys() & other.keys()):
        found += _differences(name, one[name], other[name])
    return found


def _differences(path: str, one: Any, other: Any) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [text for name in names for text in _differences(f"{path}.{name}", one.get(name), other.get(name))]
    return [] if one == other else [f"{path}: {one!r} and {other!r}"]


def with_conditions_that_hold(state: Mapping[str, JSONObject]) -> dict[str, JSONObject]:
    """Return the state without conditions whose status is False. Whether they exist depends on earlier states."""
    return {name: _holding(obj) for name, obj in state.items()}


def _holding(obj: JSONObject) -> JSONObject:
    status = meta.status(obj)
    if "conditions" not in status:
        return obj
    return obj | {"status": status | {"conditions": [one for one in status["conditions"] if one["status"] != "False"]}}
