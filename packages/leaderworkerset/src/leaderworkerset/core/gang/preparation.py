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


def prepare(whole: GangSet, scheduling: Scheduling) -> Preparation:
    """Create and update the shared objects of groups, and delete unused PodGroups."""
    try:
        return _prepare(whole, scheduling)
    except _FailedError as failed:
        return Preparation(failure=failed.failure)


def _prepare(whole: GangSet, scheduling: Scheduling) -> Preparation:
    for resource in (WORKLOADS, POD_GROUPS):
        if resource not in whole.known.kinds:
            raise _FailedError(API_NOT_AVAILABLE, levels.unavailable_error(resource.kind))
    if len(active := levels.active_levels(scheduling)) > 1:
        raise _FailedError(INVALID, levels.level_count_error(active))
    if delegation.is_delegated(whole.obj):
        return _prepare_delegated(whole, active[0])
    workload = _find_workload(whole)
    desired = workloads.build_workload(whole.obj, whole.lws, scheduling)
    if workload is None:
        created = Create(resource=WORKLOADS, object=desired, unless_own=True)
        return Preparation(
            actions=(*_delete_unused_pod_groups(whole, ""), _with_rejection_report(whole, created, WORKLOAD_FAILED))
        )
    if drift := workloads.workload_drift(workload, desired):
        raise _FailedError(WORKLOAD_FAILED, drift)
    changes = [
        _with_rejection_report(whole, patch, WORKLOAD_FAILED) for patch in _correct_min_counts(workload, desired)
    ]
    (part, *_) = levels.scheduling_parts(whole.lws, scheduling)
    name = _whole_name(whole, active[0])
    template = {"name": part.name} | workloads.build_template(
        whole.lws, replace(part, min_count=_reachable_min_count(whole, part))
    )
    shared = _write_pod_group(whole, name, workload, template) if name else None
    changes += [] if shared is None else [_with_rejection_report(whole, shared, POD_GROUP_FAILED)]
    return Preparation(
        actions=(*_delete_unused_pod_groups(whole, name), *changes), is_done=not isinstance(shared, Create)
    )


def _prepare_delegated(whole: GangSet, level: SchedulingLevel) -> Preparation:
    """Create the PodGroup of the whole LeaderWorkerSet from an owner's Workload, or do nothing (N-K8S-16)."""
    name = _whole_name(whole, level)
    if whole.known.parent is None:
        return Preparation(actions=_delete_unused_pod_groups(whole, name), is_done=True)
    if isinstance(whole.known.parent, SchedulingFailure):
        raise _FailedError(whole.known.parent.reason, whole.known.parent.message)
    try:
        template = workloads.delegated_template(whole.known.parent, whole.obj)
    except ValueError as error:
        raise _FailedError(delegation.NOT_READY, str(error)) from error
    shared = _write_pod_group(whole, name, whole.known.parent, template) if name else None
    changes = () if shared is None else (_with_rejection_report(whole, shared, POD_GROUP_FAILED),)
    return Preparation(
        actions=(*_delete_unused_pod_groups(whole, name), *changes), is_done=not isinstance(shared, Create)
    )


def _whole_name(whole: GangSet, level: SchedulingLevel) -> str:
    """Return the name of the PodGroup for the whole LeaderWorkerSet, or an empty string if it must not exist."""
    has_one = level is SchedulingLevel.WHOLE and whole.lws.spec.replicas
    return f"{workloadnames.workload_name(whole.lws)}-lws" if has_one else ""


def _find_workload(whole: GangSet) -> JSONObject | None:
    """Return the Workload of the LeaderWorkerSet, but not a Workload for one revision (provider `native`)."""
    name, key = workloadnames.workload_name(whole.lws), whole.lws.key
    workload_objects = [
        obj
        for obj in whole.known.objects
        if WORKLOADS.has(obj) and labels.TEMPLATE_REVISION_HASH not in meta.labels(obj)
    ]
    own = [obj for obj in workload_objects if meta.is_controlled(obj, whole.obj)]
    if any(meta.name(obj) == name for obj in workload_objects if not meta.is_controlled(obj, whole.obj)):
        text = f"Workload {name} already exists but is not controlled by this LeaderWorkerSet UID"
        raise _FailedError(WORKLOAD_FAILED, text)
    if len(own) > 1:
        text = f'multiple Workloads are controlled by LeaderWorkerSet {key} UID "{whole.lws.uid}"'
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


def _write_pod_group(whole: GangSet, name: str, workload: JSONObject, template: JSONObject) -> Create | Patch | None:
    """Return the required write for the PodGroup of the whole LeaderWorkerSet, or None."""
    level = {labels.SCHEDULING_LEVEL: SchedulingLevel.WHOLE.value}
    desired = workloads.build_pod_group(whole.obj, name, workload, template, level)
    existing = next((obj for obj in whole.known.objects if POD_GROUPS.has(obj) and meta.name(obj) == name), None)
    if existing is None:
        return Create(resource=POD_GROUPS, object=desired, unless_own=True)
    if meta.is_deleting(existing):
        raise _FailedError(POD_GROUP_FAILED, f"PodGroup {name} is still terminating")
    if not meta.is_controlled(existing, whole.obj):
        raise _FailedError(
            POD_GROUP_FAILED, f"PodGroup {meta.key(existing)} has immutable scheduling configuration drift"
        )
    if drift := workloads.pod_group_drift(existing, desired):
        raise _FailedError(POD_GROUP_FAILED, drift)
    if workloads.min_count(meta.spec(existing)) == workloads.min_count(meta.spec(desired)):
        return None
    policy = meta.spec(desired)["schedulingPolicy"]
    return guarded_patch(POD_GROUPS, existing, {"spec": {"schedulingPolicy": policy}})


def _reachable_min_count(whole: GangSet, part: SchedulingPart) -> int | None:
    """Return `minCount` for the PodGroup of the whole LeaderWorkerSet.

    It is limited to the number of possible pods (N-AT-10).

    While a new size is rolled out, groups keep their own size. A missing leader may be created with the smaller size.
    A failed leader of an older revision remains gated, and a Deployment without a budget keeps it until new groups
    are ready.
    """
    if part.min_count is None:
        return None
    missing = max(whole.lws.spec.replicas - len(whole.sizes), 0)
    existing = sum(whole.sizes) + missing * min([*filter(None, whole.sizes), whole.lws.size])
    return min(part.min_count, existing or part.min_count)


def _delete_unused_pod_groups(whole: GangSet, needed: str) -> tuple[Action, ...]:
    """Delete PodGroups of this LeaderWorkerSet that neither pods nor the whole set require (N-K8S-13)."""
    removed = [
        _with_rejection_report(whole, guarded_delete(POD_GROUPS, obj), CLEANUP_BLOCKED)
        for obj in whole.known.unused
        if meta.name(obj) != needed and meta.is_controlled(obj, whole.obj) and not meta.is_deleting(obj)
    ]
    return tuple(removed)


def _with_rejection_report(whole: GangSet, action: Create | Patch | Delete, reason: str) -> Action:
    """Return the write, with the event and condition that report a rejection (N-K8S-10)."""
    event = decisionevents.scheduling_failed_event(whole.obj, reason, "{error}")
    rejection = schedulingcondition.report_rejection(whole.obj, whole.lws, reason, whole.now)
    return Finally(actions=(replace(action, on_failure=(event,)),), after=(), on_failure=rejection)
