"""Creates PodGroups for replicas and roles with `spec.scheduling`, and links pods to them.

Input: a pod at its admission, later its group. Output: the pod with the name of its PodGroup (N-ADM-8, N-ADM-9); the
PodGroups of the group. They are built from the leader's revision, so that a group keeps its size during a rollout
(N-K8S-11, N-AT-25).
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Create, Emit
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.schedulinglevels import Scheduling
from leaderworkerset.core import decisionevents
from leaderworkerset.core.gang import preparation, workloads
from leaderworkerset.core.gang.native import FIELD, POD_GROUPS, WORKLOADS
from leaderworkerset.core.policies import delegation, levels, replacement, restartpolicy, workloadnames
from leaderworkerset.core.policies.gang import GangGroup
from leaderworkerset.core.policies.levels import SchedulingLevel
from leaderworkerset.core.policies.podedits import with_annotations, with_spec
from leaderworkerset.core.policies.policy import DeniedError, PolicyDecision, SchedulingFailure

LEGACY: Final = {"true": SchedulingLevel.REPLICA}
"""The name that earlier versions of the Go controller use for a level."""

RETRY: Final = 10.0
"""The requeue delay in seconds for a group with an unrelated PodGroup, which is not watched."""


def link_pod(pod: JSONObject, request: str) -> JSONObject:
    """Return the pod with its PodGroup name. A leader with an index also has a gate and an incarnation."""
    own, level = meta.annotations(pod), _read_level(pod)
    is_leader = groupname.is_leader(pod)
    workload = own.get(labels.WORKLOAD_NAME) or meta.labels(pod).get(labels.NAME, "")
    if is_leader and level is not SchedulingLevel.WHOLE and not groupname.has_random_key(pod):
        if not workloadnames.is_incarnated(workload):
            workload = workloadnames.with_incarnation(workload, request)
        pod = replacement.with_gate(with_annotations(pod, {labels.WORKLOAD_NAME: workload}))
    name = workloadnames.group_name(pod, workload, level, labels.LEADER if is_leader else labels.WORKER)
    return with_spec(pod, {FIELD: {"podGroupName": name}})


def _read_level(pod: JSONObject) -> SchedulingLevel:
    mode = meta.annotations(pod)[labels.WORKLOAD_AWARE_SCHEDULING]
    try:
        return LEGACY.get(mode) or SchedulingLevel(mode)
    except ValueError:
        raise DeniedError(f'unsupported workload-aware scheduling mode "{mode}"') from None


def decide(group: GangGroup, scheduling: Scheduling) -> PolicyDecision:
    """Create the PodGroups of a group that was linked at admission.

    Raise `ValueError` if a PodGroup cannot be updated.
    """
    level, leader = levels.active_level(scheduling), group.live.leader
    if level is SchedulingLevel.WHOLE or not workloadnames.linked_pod_group(leader):
        return PolicyDecision()
    _check_labels(leader)
    if delegation.is_delegated(group.live.obj):
        return _decide_delegated(group, level)
    workload = _find_workload(group)
    annotated = meta.annotations(leader).get(labels.WORKLOAD_NAME, "")
    begin = workloadnames.pod_group_prefix(annotated, meta.name(workload))
    if _has_other_pod_group(leader, begin, level):
        return PolicyDecision(
            delay_reason=f"leader pod {meta.name(leader)} belongs to a previous LeaderWorkerSet with this name"
        )
    if astray := _recreate_mismatched_group(group, workloadnames.group_name(leader, begin, level, labels.WORKER)):
        return astray
    pod_groups = []
    for part in levels.scheduling_parts(group.revised, scheduling):
        name = workloadnames.group_name(leader, begin, level, part.role)
        template = {"name": part.name} | workloads.build_template(group.revised, part)
        own_labels = workloads.group_labels(leader, level, part.role)
        pod_groups.append(workloads.build_pod_group(group.live.obj, name, workload, template, own_labels))
    return _create(group, pod_groups)


def _has_other_pod_group(leader: JSONObject, begin: str, level: SchedulingLevel) -> bool:
    """Return whether a leader specifies the PodGroup of a previous LeaderWorkerSet."""
    return workloadnames.linked_pod_group(leader) != workloadnames.group_name(leader, begin, level, labels.LEADER)


def _check_labels(leader: JSONObject) -> None:
    for label in (labels.GROUP_INDEX, labels.TEMPLATE_REVISION_HASH):
        if not meta.labels(leader).get(label):
            raise ValueError(f"leader pod {meta.key(leader)} has no {label} label")


def _decide_delegated(group: GangGroup, level: SchedulingLevel) -> PolicyDecision:
    """Create the PodGroup of a replica from an owner's Workload, or return no actions (N-K8S-16)."""
    parent, obj, leader = group.live.scheduling.parent, group.live.obj, group.live.leader
    if parent is None:
        return PolicyDecision()
    if isinstance(parent, SchedulingFailure):
        raise ValueError(parent.message)  # noqa: TRY004 - no type is wrong
    template, own_labels = workloads.delegated_template(parent, obj), workloads.group_labels(leader, level, "")
    return _create(
        group, [workloads.build_pod_group(obj, workloadnames.linked_pod_group(leader), parent, template, own_labels)]
    )


def _find_workload(group: GangGroup) -> JSONObject:
    lws = group.live.lws
    name = workloadnames.workload_name(lws)
    workload = next(
        (obj for obj in group.live.scheduling.objects if WORKLOADS.has(obj) and meta.name(obj) == name), None
    )
    if workload is None:
        raise ValueError(f"Workload {lws.namespace}/{name} has not been created yet")
    if not meta.is_controlled(workload, group.live.obj):
        raise ValueError(f"Workload {meta.key(workload)} is not controlled by the expected LeaderWorkerSet UID")
    return workload


def _own_workers(group: GangGroup) -> JSONObject | None:
    """Return the worker StatefulSet of this leader, but not of a previous leader."""
    workers = group.live.workers
    return workers if workers is not None and meta.is_controlled(workers, group.live.leader) else None


def _recreate_mismatched_group(group: GangGroup, expected: str) -> PolicyDecision | None:
    """Recreate a group without bound workers if the leader and the workers have different PodGroups (N-K8S-17)."""
    leader, own = group.live.leader, _own_workers(group)
    if own is None:
        return None
    workers = [pod for pod in group.live.objects.pods if meta.is_controlled(pod, own)]
    if all(workloadnames.linked_pod_group(pod) == expected for pod in workers) or any(
        meta.spec(pod).get("nodeName") for pod in workers
    ):
        return None
    note = f"Workers of leader pod {meta.name(leader)} do not belong to PodGroup {expected}; recreating the group"
    return PolicyDecision(delay_reason=note, actions=(restartpolicy.recreate(group.live, note),))


def _create(group: GangGroup, pod_groups: Sequence[JSONObject]) -> PolicyDecision:
    """Create missing PodGroups. Delay workers while a PodGroup is terminating or has a different owner."""
    obj, leader = group.live.obj, group.live.leader
    known = {meta.name(obj): obj for obj in group.live.scheduling.objects if POD_GROUPS.has(obj)}
    failed = decisionevents.scheduling_failed_event(obj, preparation.POD_GROUP_FAILED, "{error}", leader)
    creations = []
    for pod_group in pod_groups:
        existing = known.get(meta.name(pod_group))
        if existing is None:
            creations.append(Create(resource=POD_GROUPS, object=pod_group, unless_own=True, on_failure=(failed,)))
        elif not meta.is_controlled(existing, obj):
            event = decisionevents.unexpected_owner_event(leader, meta.name(pod_group))
            return PolicyDecision(delay_reason=event.note, actions=(Emit(events=(event,)),), requeue_after=RETRY)
        elif meta.is_deleting(existing):
            return _decide_terminating(group, meta.name(pod_group))
        elif drift := workloads.pod_group_drift(existing, pod_group):
            raise ValueError(drift)
    return PolicyDecision(actions=tuple(creations))


def _decide_terminating(group: GangGroup, name: str) -> PolicyDecision:
    """Recreate a group without workers if its leader blocks the deletion of this terminating PodGroup.

    The new leader names its own PodGroup (N-AT-12). A group with workers keeps the PodGroup until the group is deleted.
    """
    leader, note = group.live.leader, f"PodGroup {name} is still terminating"
    has_workers = _own_workers(group) is not None
    is_complete = has_workers or (group.revised.size == 1 and not replacement.is_gated(leader))
    if is_complete or workloadnames.linked_pod_group(leader) != name:
        return PolicyDecision(delay_reason=note)
    return PolicyDecision(delay_reason=note, actions=(restartpolicy.recreate(group.live, note),))
