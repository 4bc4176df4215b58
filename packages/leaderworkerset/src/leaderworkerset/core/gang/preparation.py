"""Prepares the shared objects of groups with `spec.scheduling` before leaders are created (N-K8S-7 to N-K8S-13).

Input: the LeaderWorkerSet, its Workload, the PodGroup of the whole set, and PodGroups that no pod names. Output:
writes of these objects, or the failure that prevents changes of leaders. Each group creates the PodGroups of its
replica and roles (`replicas.py`).
"""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action, Create, Delete, Finally, Patch, guarded_delete, guarded_patch
from leaderworkerset.api import labels
from leaderworkerset.api.schedulinglevels import Scheduling
from leaderworkerset.core import decisionevents
from leaderworkerset.core.gang import workloads
from leaderworkerset.core.gang.native import POD_GROUPS, WORKLOADS
from leaderworkerset.core.leaderworkerset import schedulingcondition
from leaderworkerset.core.policies import delegation, levels, workloadnames
from leaderworkerset.core.policies.gang import GangSet, Preparation
from leaderworkerset.core.policies.levels import SchedulingLevel, SchedulingPart
from leaderworkerset.core.policies.policy import SchedulingFailure

API_NOT_AVAILABLE: Final = "APINotAvailable"
INVALID: Final = "InvalidSchedulingConfiguration"
WORKLOAD_FAILED: Final = "WorkloadCreateFailed"
POD_GROUP_FAILED: Final = "PodGroupCreateFailed"
CLEANUP_BLOCKED: Final = "PodGroupCleanupBlocked"


class _FailedError(ValueError):
    """Existing objects prevent the creation of shared objects."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.failure = SchedulingFailure(reason, message)


def prepare(gang_set: GangSet, scheduling: Scheduling) -> Preparation:
    """Create and update the shared objects of groups, and delete unused PodGroups."""
    try:
        return _prepare(gang_set, scheduling)
    except _FailedError as failed:
        return Preparation(failure=failed.failure)


def _prepare(gang_set: GangSet, scheduling: Scheduling) -> Preparation:
    for resource in (WORKLOADS, POD_GROUPS):
        if resource not in gang_set.known.kinds:
            raise _FailedError(API_NOT_AVAILABLE, levels.unavailable_error(resource.kind))
    if len(active := levels.active_levels(scheduling)) > 1:
        raise _FailedError(INVALID, levels.level_count_error(active))
    if delegation.is_delegated(gang_set.obj):
        return _prepare_delegated(gang_set, active[0])
    workload = _find_workload(gang_set)
    desired = workloads.build_workload(gang_set.obj, gang_set.lws, scheduling)
    if workload is None:
        created = Create(resource=WORKLOADS, object=desired, unless_own=True)
        return Preparation(
            actions=(
                *_delete_unused_pod_groups(gang_set, ""),
                _with_rejection_report(gang_set, created, WORKLOAD_FAILED),
            )
        )
    if drift := workloads.workload_drift(workload, desired):
        raise _FailedError(WORKLOAD_FAILED, drift)
    changes = [
        _with_rejection_report(gang_set, patch, WORKLOAD_FAILED) for patch in _correct_min_counts(workload, desired)
    ]
    (part, *_) = levels.scheduling_parts(gang_set.lws, scheduling)
    name = _shared_group_name(gang_set, active[0])
    template = {"name": part.name} | workloads.build_template(
        gang_set.lws, replace(part, min_count=_reachable_min_count(gang_set, part))
    )
    shared = _write_pod_group(gang_set, name, workload, template) if name else None
    changes += [] if shared is None else [_with_rejection_report(gang_set, shared, POD_GROUP_FAILED)]
    return Preparation(
        actions=(*_delete_unused_pod_groups(gang_set, name), *changes), is_done=not isinstance(shared, Create)
    )


def _prepare_delegated(gang_set: GangSet, level: SchedulingLevel) -> Preparation:
    """Create the PodGroup of the whole LeaderWorkerSet from an owner's Workload, or do nothing (N-K8S-16)."""
    name = _shared_group_name(gang_set, level)
    if gang_set.known.parent is None:
        return Preparation(actions=_delete_unused_pod_groups(gang_set, name), is_done=True)
    if isinstance(gang_set.known.parent, SchedulingFailure):
        raise _FailedError(gang_set.known.parent.reason, gang_set.known.parent.message)
    try:
        template = workloads.delegated_template(gang_set.known.parent, gang_set.obj)
    except ValueError as error:
        raise _FailedError(delegation.NOT_READY, str(error)) from error
    shared = _write_pod_group(gang_set, name, gang_set.known.parent, template) if name else None
    changes = () if shared is None else (_with_rejection_report(gang_set, shared, POD_GROUP_FAILED),)
    return Preparation(
        actions=(*_delete_unused_pod_groups(gang_set, name), *changes), is_done=not isinstance(shared, Create)
    )


def _shared_group_name(gang_set: GangSet, level: SchedulingLevel) -> str:
    """Return the name of the PodGroup for the whole LeaderWorkerSet, or an empty string if it must not exist."""
    has_one = level is SchedulingLevel.WHOLE and gang_set.lws.spec.replicas
    return f"{workloadnames.workload_name(gang_set.lws)}-lws" if has_one else ""


def _find_workload(gang_set: GangSet) -> JSONObject | None:
    """Return the Workload of the LeaderWorkerSet, but not a Workload for one revision (provider `native`)."""
    name, key = workloadnames.workload_name(gang_set.lws), gang_set.lws.key
    workload_objects = [
        obj
        for obj in gang_set.known.objects
        if WORKLOADS.has(obj) and labels.TEMPLATE_REVISION_HASH not in meta.labels(obj)
    ]
    own = [obj for obj in workload_objects if meta.is_controlled(obj, gang_set.obj)]
    if any(meta.name(obj) == name for obj in workload_objects if not meta.is_controlled(obj, gang_set.obj)):
        text = f"Workload {name} already exists but is not controlled by this LeaderWorkerSet UID"
        raise _FailedError(WORKLOAD_FAILED, text)
    if len(own) > 1:
        text = f'multiple Workloads are controlled by LeaderWorkerSet {key} UID "{gang_set.lws.metadata.uid}"'
        raise _FailedError(WORKLOAD_FAILED, text)
    if own and meta.name(own[0]) != name:
        text = f'owned Workload {meta.key(own[0])} does not have the expected UID-qualified name "{name}"'
        raise _FailedError(WORKLOAD_FAILED, text)
    if own and meta.is_deleting(own[0]):
        raise _FailedError(WORKLOAD_FAILED, f"Workload {meta.key(own[0])} is still terminating")
    return own[0] if own else None


def _correct_min_counts(workload: JSONObject, desired: JSONObject) -> Iterator[Patch]:
    """Yield the changes to `minCount` in the templates."""
    counts = {template["name"]: workloads.min_count(template) for template in workloads.templates_of(desired)}
    templates = workloads.templates_of(workload)
    new = [
        template if (count := counts[template["name"]]) is None else workloads.with_min_count(template, count)
        for template in templates
    ]
    if new != list(templates):
        yield guarded_patch(WORKLOADS, workload, {"spec": {"podGroupTemplates": new}})


def _write_pod_group(gang_set: GangSet, name: str, workload: JSONObject, template: JSONObject) -> Create | Patch | None:
    """Return the required write for the PodGroup of the whole LeaderWorkerSet, or None."""
    level = {labels.SCHEDULING_LEVEL: SchedulingLevel.WHOLE.value}
    desired = workloads.build_pod_group(gang_set.obj, name, workload, template, level)
    existing = next((obj for obj in gang_set.known.objects if POD_GROUPS.has(obj) and meta.name(obj) == name), None)
    if existing is None:
        return Create(resource=POD_GROUPS, object=desired, unless_own=True)
    if meta.is_deleting(existing):
        raise _FailedError(POD_GROUP_FAILED, f"PodGroup {name} is still terminating")
    if not meta.is_controlled(existing, gang_set.obj):
        raise _FailedError(
            POD_GROUP_FAILED, f"PodGroup {meta.key(existing)} has immutable scheduling configuration drift"
        )
    if drift := workloads.pod_group_drift(existing, desired):
        raise _FailedError(POD_GROUP_FAILED, drift)
    if workloads.min_count(meta.spec(existing)) == workloads.min_count(meta.spec(desired)):
        return None
    policy = meta.spec(desired)["schedulingPolicy"]
    return guarded_patch(POD_GROUPS, existing, {"spec": {"schedulingPolicy": policy}})


def _reachable_min_count(gang_set: GangSet, part: SchedulingPart) -> int | None:
    """Return `minCount` for the PodGroup of the whole LeaderWorkerSet.

    It is limited to the number of possible pods (N-AT-10).

    While a new size is rolled out, groups keep their own size. A missing leader may be created with the smaller size.
    A failed leader of an older revision remains gated, and a Deployment without a budget keeps it until new groups
    are ready.
    """
    if part.min_count is None:
        return None
    missing = max(gang_set.lws.spec.replicas - len(gang_set.sizes), 0)
    existing = sum(gang_set.sizes) + missing * min([*filter(None, gang_set.sizes), gang_set.lws.size])
    return min(part.min_count, existing or part.min_count)


def _delete_unused_pod_groups(gang_set: GangSet, needed: str) -> tuple[Action, ...]:
    """Delete PodGroups of this LeaderWorkerSet that neither pods nor the whole set require (N-K8S-13)."""
    removed = [
        _with_rejection_report(gang_set, guarded_delete(POD_GROUPS, obj), CLEANUP_BLOCKED)
        for obj in gang_set.known.unused
        if meta.name(obj) != needed and meta.is_controlled(obj, gang_set.obj) and not meta.is_deleting(obj)
    ]
    return tuple(removed)


def _with_rejection_report(gang_set: GangSet, action: Create | Patch | Delete, reason: str) -> Action:
    """Return the write, with the event and condition that report a rejection (N-K8S-10)."""
    event = decisionevents.scheduling_failed_event(gang_set.obj, reason, "{error}")
    rejection = schedulingcondition.report_rejection(gang_set.obj, gang_set.lws, reason, gang_set.now)
    return Finally(actions=(replace(action, on_failure=(event,)),), after=(), on_failure=rejection)
