"""Builds the PodDisruptionBudget of a group, and reads its status.

A budget is *open* if every pod of the group may be evicted, and *closed* if no pod may be evicted. A pod that is not
ready can always be evicted, because its group is already unavailable.
"""

from math import inf
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, names
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from kuberuntime.plan import Create, Event, Patch, identified_patch
from leaderworkerset.api import labels
from leaderworkerset.core import decisionevents

ALWAYS_ALLOW: Final = "AlwaysAllow"
OPEN: Final = 0
"""The value of `minAvailable` for a group that is open for evictions."""


class ProtectedGroup(Struct, frozen=True, kw_only=True):
    """A group and its budget, if the budget exists. `size` is the number of pods in the group.

    `min_available` is the number of pods that a closed budget requires: more than `size` if the group is about to grow.
    `is_present` states that the group has a leader that is not being deleted. `must_move` states that a pod of the
    group is on a closed node. `age` is in seconds since the creation of the leader, infinite unless a node is cordoned.
    """

    label: str
    size: int
    min_available: int
    is_present: bool
    must_move: bool
    budget: JSONObject | None
    age: float = inf

    @property
    def is_open(self) -> bool:
        """Return whether the budget allows evictions of all pods in a group."""
        return self.budget is not None and _min_available(self.budget) < self.size

    @property
    def has_expected_min_available(self) -> bool:
        """Return whether the controller sets this `minAvailable`, which is `OPEN` or `min_available`."""
        return self.budget is not None and _min_available(self.budget) in {OPEN, self.min_available}

    @property
    def is_complete(self) -> bool:
        """Return whether all pods are ready and not terminating, according to the budget status."""
        if self.budget is None or not self.is_present:
            return False
        status = meta.status(self.budget)
        return not status.get("disruptedPods") and int(status.get("currentHealthy") or 0) >= self.size

    @property
    def has_no_pending_eviction(self) -> bool:
        """Return whether no eviction can be in progress, and no further eviction will be allowed.

        The API server records an eviction in the status before it deletes the pod. It does not grant evictions while
        the status belongs to an older spec. So it is certain if the status of the closed spec shows all pods healthy
        and no recorded eviction.
        """
        return self.is_complete and not self.is_open and self.budget is not None and meta.is_observed(self.budget)


def budget_name(lws: JSONObject, label: str) -> str:
    """Return the name of a group's budget."""
    return f"{meta.name(lws)}-{label}"


def can_have_budget(lws: JSONObject, label: str) -> bool:
    """Return whether a group with this label can have a budget. Users can set any label value."""
    return not names.dns_1123_subdomain(budget_name(lws, label))


def create(lws: JSONObject, group: ProtectedGroup) -> Create:
    """Return an action that creates a closed budget for a group."""
    failed = f"Failed to create the disruption budget of group {group.label}: {{error}}"
    return Create(
        resource=POD_DISRUPTION_BUDGETS,
        object=_build(lws, group.label, group.min_available),
        unless_own=True,
        on_failure=(decisionevents.failed_create(lws, failed),),
    )


def is_unmodified(lws: JSONObject, label: str, budget: JSONObject) -> bool:
    """Return whether only `minAvailable` was changed since creation. An edited budget is recreated."""
    spec = meta.spec(budget)
    return (
        meta.name(budget) == budget_name(lws, label)
        and spec.keys() == {"minAvailable", "selector", "unhealthyPodEvictionPolicy"}
        and spec["selector"] == {"matchLabels": _labels(lws, label)}
        and spec["unhealthyPodEvictionPolicy"] == ALWAYS_ALLOW
    )


def _min_available(budget: JSONObject) -> int:
    minimum = meta.spec(budget).get("minAvailable")
    return minimum if isinstance(minimum, int) else OPEN


def set_min_available(budget: JSONObject, least: int, events: tuple[Event, ...] = ()) -> Patch:
    """Return a write that sets `minAvailable`, which closes the group for evictions, or opens it (`OPEN`)."""
    patch = {"spec": {"minAvailable": least}}
    return identified_patch(POD_DISRUPTION_BUDGETS, budget, patch, if_present=True, on_success=events)


def _build(lws: JSONObject, label: str, least: int) -> JSONObject:
    own = _labels(lws, label)
    spec = {"minAvailable": least, "selector": {"matchLabels": own}, "unhealthyPodEvictionPolicy": ALWAYS_ALLOW}
    return POD_DISRUPTION_BUDGETS.controlled(lws, budget_name(lws, label), own, spec=spec)


def _labels(lws: JSONObject, label: str) -> dict[str, str]:
    return {labels.NAME: meta.name(lws), labels.GROUP_INDEX: label}
