"""Describes the state of a group as one small value for each leader pod.

Input: a cached leader pod and its worker StatefulSet. Output: a `GroupFacts`. Whole objects are read only when it is
created. The caller keeps it until one of the two objects changes, and reads only the small values of other groups
(R-ROLL-8, R-ROLL-9, R-STAT-5, R-STAT-6).
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.groupname import GroupEnd

UNKNOWN: Final = UID("")

HELD: Final = "OnDelete"
"""The update strategy of a worker StatefulSet during an in-place update."""


class Workers(Struct, frozen=True):
    """The worker StatefulSet of a group. `group_index` is the original label value."""

    is_ready: bool
    revision: str
    group_index: str


class GroupFacts(Struct, frozen=True):
    """A leader pod and its workers, if their StatefulSet exists.

    - `group_index` is the leader's label, verbatim. `index` is the same as a number, None if it is not a number.
    - `statefulset_revision` is the revision of the leader StatefulSet from which the leader was created.
    - `is_gated`: the leader has scheduling gates. A queue has not admitted the group yet, or has evicted it.
    - `original_size` is the size with which the leader was created, 0 if unknown. The spec may differ now.
    - `has_replacement_gate`: the leader has the gate of leaders that may replace another group.
    - `replaced_group` is the leader of the replaced group, if known (`gatedleaders.py`).
    - `is_exhausted`: the group exhausted its restarts, or ended by itself (`result`). It has no successor, and is not ready,
      whatever the status of its terminating pods (N-ST-13).
    - `is_condemned`: the group failed, and is to be recreated or was given up. It is not ready, whatever its pods report.
    - `target_revision` is the revision to which the group is being updated in place. Until then, the group is not ready.
    - `is_rejected`: its nodes do not support that update.
    """

    leader: str
    group_index: str
    index: int | None
    is_leader_ready: bool
    revision: str
    workers: Workers | None
    uid: UID = UNKNOWN
    is_deleting: bool = False
    statefulset_revision: str = ""
    is_gated: bool = False
    original_size: int = 0
    has_replacement_gate: bool = False
    replaced_group: str = ""
    is_exhausted: bool = False
    result: GroupEnd | None = None
    is_condemned: bool = False
    target_revision: str = ""
    is_rejected: bool = False


def describe(
    leader: JSONObject,
    worker_statefulset: JSONObject | None,
    *,
    is_condemned: bool = False,
) -> GroupFacts:
    """Describe a group from its leader pod and the StatefulSet with the same name.

    Workers of an earlier leader with this name do not count, because they are deleted soon. They may be ready, but
    their group is not. A StatefulSet with a different owner does not count either.
    """
    owner = None if worker_statefulset is None else meta.controller_of(worker_statefulset)
    if owner is not None and owner["uid"] != meta.uid(leader):
        worker_statefulset = None
    group_index, is_exhausted = groupname.group_label(leader), groupname.is_finished(leader)
    gates = [gate.get("name") for gate in meta.spec(leader).get("schedulingGates") or []]
    return GroupFacts(
        leader=meta.name(leader),
        group_index=group_index,
        index=decimals.natural(group_index),
        is_leader_ready=is_pod_ready(leader) and not is_exhausted and not is_condemned,
        revision=groupname.revision_key(leader),
        workers=None if worker_statefulset is None else describe_workers(worker_statefulset),
        uid=meta.uid(leader),
        is_deleting=meta.is_deleting(leader),
        statefulset_revision=meta.labels(leader).get(labels.STATEFULSET_REVISION, ""),
        is_gated=bool(gates),
        original_size=original_size(leader),
        has_replacement_gate=labels.REPLACEMENT_GATE in gates,
        replaced_group=meta.annotations(leader).get(labels.REPLACES, ""),
        is_exhausted=is_exhausted,
        result=groupname.group_result(leader),
        is_condemned=is_condemned,
    )


def without_readiness(groups: Mapping[str, GroupFacts], leaders: Collection[str]) -> dict[str, GroupFacts]:
    """Return the groups, and mark the groups of `leaders` as not ready."""
    return {name: replace(group, is_leader_ready=False) if name in leaders else group for name, group in groups.items()}


def is_paused(worker_statefulset: JSONObject) -> bool:
    """Return whether a StatefulSet must not replace pods during an in-place update."""
    return bool((meta.spec(worker_statefulset).get("updateStrategy") or {}).get("type") == HELD)


def original_size(leader: JSONObject) -> int:
    """Return the original size of a leader's group, or 0 if the leader does not record it."""
    return decimals.natural(meta.annotations(leader).get(labels.SIZE, "")) or 0


def is_pod_ready(pod: JSONObject) -> bool:
    """Return whether the pod is running and Ready."""
    return meta.status(pod).get("phase") == "Running" and meta.is_condition_true(pod, "Ready")


def is_statefulset_ready(statefulset: JSONObject) -> bool:
    """Return whether all pods are available and have the same revision (R-ROLL-9)."""
    status = meta.status(statefulset)
    replicas = meta.spec(statefulset).get("replicas", 1)
    return bool(replicas == (status.get("availableReplicas") or 0) and has_one_revision(statefulset))


def has_one_revision(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet status reports the latest revision for all pods, or no revisions."""
    status = meta.status(statefulset)
    return (status.get("currentRevision") or "") == (status.get("updateRevision") or "")


def creates_latest_revision(statefulset: JSONObject) -> bool:
    """Return whether all pods are created from the latest revision, according to the StatefulSet status.

    When the manager sets the current revision, it writes a wrong count. A controller that has not observed this would
    create a pod from the older revision, and write that revision to the status again (docs/adr/0030).
    """
    status = meta.status(statefulset)
    is_counted = (status.get("currentReplicas") or 0) == (status.get("updatedReplicas") or 0)
    return is_counted and has_one_revision(statefulset)


def describe_workers(statefulset: JSONObject) -> Workers:
    """Describe the worker StatefulSet of a group."""
    return Workers(
        is_ready=is_statefulset_ready(statefulset) and not is_paused(statefulset),
        revision=groupname.revision_key(statefulset),
        group_index=groupname.group_label(statefulset),
    )
