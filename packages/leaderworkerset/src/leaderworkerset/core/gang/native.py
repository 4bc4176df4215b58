"""Supports gang scheduling by kube-scheduler in Kubernetes 1.36 or later (R-KQ-140 to R-KQ-150).

Kubernetes 1.37 serves them as `v1beta1`, 1.36 serves them as `v1alpha2`, and no version serves both (N-117-5). From
1.37 on, the scheduler starts a group only if all its pods have the priority of the PodGroup.

Each group has a PodGroup, which a field of its pods names. Groups of one revision share a Workload, which describes
them and which the scheduler never reads. Both are immutable. A PodGroup that is being deleted exists as long as any of
its pods (R-KQ-147). So every leader pod gets a PodGroup with a unique name, and does not wait until the old PodGroup is
deleted.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.gang.coscheduling import differing_field_errors
from leaderworkerset.core.gang.provider import (
    ADVICE,
    DEFAULT_SCHEDULER,
    Provider,
    deadlock_errors,
    group_metadata,
    scheduler_name,
    templates,
)
from leaderworkerset.core.policies.gang import GangGroup, initial_pod_count
from leaderworkerset.core.policies.podedits import with_spec

NAME: Final = "native"
KUBERNETES: Final = "kubernetes"
"""The same scheduler with the name used by the Go controller. It is limited to groups with `spec.scheduling`."""
GROUP: Final = "scheduling.k8s.io"
POD_GROUPS: Final = Resource(GROUP, "v1beta1", "podgroups", "PodGroup")
WORKLOADS: Final = Resource(GROUP, "v1beta1", "workloads", "Workload")
ALPHA_POD_GROUPS: Final = replace(POD_GROUPS, version="v1alpha2")
ALPHA_WORKLOADS: Final = replace(WORKLOADS, version="v1alpha2")
TEMPLATE: Final = "group"
FIELD: Final = "schedulingGroup"
PRIORITY: Final = "priorityClassName"
SYSTEM: Final = "system-"
"""The reserved prefix of priority classes that exceed the maximum priority of a PodGroup."""


def errors(lws: LeaderWorkerSet) -> Sequence[FieldError]:
    """Return the errors for groups that cannot be scheduled.

    Their workers wait for the leader, their pods differ in scheduler or priority, or have a system priority (R-KQ-149).
    """
    system = f"PodGroups must not have a system priority. Use a different class, {ADVICE}"
    return [
        *differing_field_errors(lws, ("schedulerName", PRIORITY), NAME),
        *deadlock_errors(lws, NAME),
        *(
            invalid(f"{path}.{PRIORITY}", spec[PRIORITY], system)
            for path, spec in templates(lws)
            if str(spec.get(PRIORITY) or "").startswith(SYSTEM)
        ),
    ]


def is_scheduled_by_default(pod: JSONObject) -> bool:
    """Return whether the scheduler name of the pod is the default of kube-scheduler."""
    return scheduler_name(meta.spec(pod)) == DEFAULT_SCHEDULER


def has_pod_group(pod: JSONObject) -> bool:
    """Return whether the user has linked the pod to a PodGroup."""
    return bool(meta.spec(pod).get(FIELD))


def link(pod: JSONObject, group: str) -> JSONObject:
    """Return a copy of the pod that refers to the PodGroup of the group."""
    return with_spec(pod, {FIELD: {"podGroupName": group}})


def build(group: GangGroup, name: str) -> JSONObject:
    """Build the PodGroup with the policy and priority of the Workload."""
    reference = {"workloadName": _workload_name(group), "templateName": TEMPLATE}
    return {
        **POD_GROUPS.type_meta,
        "metadata": group_metadata(group, name, blocks=False),
        "spec": {"workloadRef": reference, **_scheduling_fields(group)},
    }


def _build_alpha(group: GangGroup, name: str) -> JSONObject:
    """Build the PodGroup for Kubernetes 1.36, in which the Workload reference has different field names."""
    reference = {"workloadName": _workload_name(group), "podGroupTemplateName": TEMPLATE}
    spec = {"podGroupTemplateRef": {"workload": reference}, **_scheduling_fields(group)}
    return build(group, name) | {"apiVersion": ALPHA_POD_GROUPS.api_version, "spec": spec}


def build_shared(group: GangGroup) -> Sequence[JSONObject]:
    """Build the Workload for the revision of the group."""
    obj, leader = group.live.obj, group.live.leader
    revision = groupname.revision_key(leader)
    own = {labels.NAME: meta.name(obj), labels.TEMPLATE_REVISION_HASH: revision}
    spec = workload_spec(obj, [{"name": TEMPLATE, **_scheduling_fields(group)}])
    return (WORKLOADS.controlled(obj, _workload_name(group), own, spec=spec),)


def workload_spec(obj: JSONObject, templates: Sequence[JSONObject]) -> JSONObject:
    """Return the Workload spec of this LeaderWorkerSet."""
    reference = {"apiGroup": obj["apiVersion"].partition("/")[0], "kind": obj["kind"], "name": meta.name(obj)}
    return {"controllerRef": reference, "podGroupTemplates": list(templates)}


def _build_alpha_shared(group: GangGroup) -> Sequence[JSONObject]:
    return tuple(obj | {"apiVersion": ALPHA_WORKLOADS.api_version} for obj in build_shared(group))


def _scheduling_fields(group: GangGroup) -> JSONObject:
    """Return the scheduling fields of a group. Kubernetes 1.36 drops the priority without group preemption."""
    priority = meta.spec(group.revised.leader_template).get(PRIORITY)
    policy = {"gang": {"minCount": initial_pod_count(group.revised)}}
    return {"schedulingPolicy": policy} | ({PRIORITY: priority} if priority else {})


def _workload_name(group: GangGroup) -> str:
    """Return the Workload name. It includes the minimum, which can change without a new revision."""
    revision = groupname.revision_key(group.live.leader)
    return f"{group.live.lws.name}-{revision}-{initial_pod_count(group.revised)}"


NATIVE_ALPHA: Final = Provider(
    name=NAME,
    group_object=ALPHA_POD_GROUPS,
    shared=ALPHA_WORKLOADS,
    schedules=is_scheduled_by_default,
    has_pod_group=has_pod_group,
    link=link,
    build=_build_alpha,
    build_shared=_build_alpha_shared,
    errors=errors,
)
NATIVE: Final = replace(
    NATIVE_ALPHA,
    group_object=POD_GROUPS,
    shared=WORKLOADS,
    build=build,
    build_shared=build_shared,
    previous_version=NATIVE_ALPHA,
)
