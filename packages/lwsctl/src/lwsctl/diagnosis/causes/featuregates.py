"""Finds components in which the feature gate for native gang scheduling is disabled, based on PodGroups. Pure.

If the feature gate is disabled, kube-apiserver drops the reference from a pod to its PodGroup, and does not serve
PodGroups. kube-scheduler schedules pods individually and does not set a condition on their PodGroup.
kube-controller-manager never finalizes the deletion of PodGroups.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.conditions import WORKLOAD_SCHEDULING_CREATED
from leaderworkerset.decisions.nodefit import (
    DEFAULT_SCHEDULER,
    NATIVE_GANG,
    NATIVE_GANG_NAME,
    VOLCANO_GROUP_NAME,
    linked_pod_group,
    scheduler_name,
)
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.unreconciled import set_subject
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Person

API_SERVER: Final = "kube-apiserver"
SCHEDULER: Final = "kube-scheduler"
CONTROLLER_MANAGER: Final = "kube-controller-manager"

SHOWN: Final = {
    API_SERVER: "removed the reference to PodGroup {group} from a pod",
    SCHEDULER: "scheduled the pods of PodGroup {group} individually, and did not set a condition",
    CONTROLLER_MANAGER: "did not delete PodGroup {group}, although no pod refers to it",
}
"""The visible effect on a PodGroup if a component's feature gate is disabled."""

REMEDIES: Final = {
    API_SERVER: "start kube-apiserver with --feature-gates=GenericWorkload=true, and enable the API scheduling.k8s.io",
    SCHEDULER: "start kube-scheduler with --feature-gates=GenericWorkload=true (Kubernetes 1.36: also GangScheduling=true)",
    CONTROLLER_MANAGER: "start kube-controller-manager with --feature-gates=GenericWorkload=true",
}

PROMPT: Final = timedelta(seconds=10)
"""The maximum time until a component whose feature gate is enabled writes a field that indicates this."""


def disabled_gates(
    groups: Iterable[JSONObject], pods: Iterable[JSONObject], now: datetime
) -> Iterator[tuple[str, str]]:
    """Yield the components whose feature gate is disabled, with the PodGroup that indicates this.

    `pods` are the pods in the same namespace.
    """
    members: dict[str, list[JSONObject]] = defaultdict(list)
    for pod in pods:
        marks = meta.annotations(pod)
        if name := linked_pod_group(pod):
            members[name].append(pod)
        elif marks.get(labels.GANG_SCHEDULER) == NATIVE_GANG_NAME and labels.GANG_GROUP in marks:
            yield API_SERVER, marks[labels.GANG_GROUP]
        elif _follows_native(pod) and labels.WORKLOAD_NAME in marks:
            yield API_SERVER, marks[labels.WORKLOAD_NAME]
    for group in groups:
        name = meta.name(group)
        if meta.is_deleting(group):
            if name not in members and _is_past(meta.metadata(group)["deletionTimestamp"], now):
                yield CONTROLLER_MANAGER, name
        elif not meta.status(group).get("conditions") and any(
            _was_processed_by_scheduler(pod, now) for pod in members[name]
        ):
            yield SCHEDULER, name


def _follows_native(pod: JSONObject) -> bool:
    """Return whether a pod should belong to a native PodGroup.

    Other providers of spec.scheduling have separate kinds.
    """
    marks = meta.annotations(pod)
    is_native = VOLCANO_GROUP_NAME not in marks and scheduler_name(meta.spec(pod)) == DEFAULT_SCHEDULER
    return is_native and labels.WORKLOAD_AWARE_SCHEDULING in marks


def describe_evidence(component: str, group: str) -> str:
    """Describe how a PodGroup indicates that a component's feature gate is disabled."""
    return f"{component} {SHOWN[component].format(group=group)}"


def _was_processed_by_scheduler(pod: JSONObject, now: datetime) -> bool:
    """Return whether the scheduler has scheduled the pod or found no suitable node."""
    condition = meta.find_condition(pod, "PodScheduled") or {}
    return condition.get("reason") != "SchedulingGated" and _is_past(condition.get("lastTransitionTime"), now)


def _is_past(moment: str | None, now: datetime) -> bool:
    return bool(moment) and now - datetime.fromisoformat(str(moment)) >= PROMPT


@cause(
    code="LWS-E055",
    title="a feature gate for gang scheduling is disabled",
    meaning="Native gang scheduling requires a feature gate on kube-apiserver, kube-scheduler and kube-controller-manager. The message shows on which component the feature gate is disabled.",
    person=Person.ADMINISTRATOR,
    remedy="Enable the feature gate on the component in the message, or use a different gang scheduler.",
)
def find_disabled_gate(observed: Observed) -> Finding | None:
    """Find a group that does not start completely because a component does not support native gang scheduling."""
    groups = [group for kind in NATIVE_GANG.group_objects for group in observed.get(kind)]
    components = {group: component for component, group in disabled_gates(groups, observed.view.pods, observed.now)}
    for group, rank in observed.unready_ranks if components else ():
        for member in group.ranks:
            name = next(
                (candidate for candidate in _pod_group_names(member.object or {}) if candidate in components), None
            )
            if name is not None:
                component = components[name]
                return Finding(
                    subject=ranks.pod_subject(rank),
                    sentence=f"group {rank.group} is not gang-scheduled, because the native gang scheduling feature gate is disabled on {component}",
                    evidence=(describe_evidence(component, name),),
                    steps=(REMEDIES[component],),
                )
    return None


def _pod_group_names(pod: JSONObject) -> Iterator[str]:
    """Yield the PodGroups that can indicate disabled feature gates. Pods reference them or should reference them."""
    yield linked_pod_group(pod)
    yield from (meta.annotations(pod).get(key, "") for key in (labels.GANG_GROUP, labels.WORKLOAD_NAME))


PREREQUISITE_STEPS: Final = {
    "APINotAvailable": REMEDIES[API_SERVER],
    "UnsupportedProviderCapability": "set gangSchedulingManagement.schedulerProvider to kubernetes in the manager's configuration",
    "ParentWorkloadNotReady": "create the Workload of the owner, or remove the delegation annotation",
}
"""The next steps for each reason of the condition. Unlisted reasons contain an object."""

OTHER_STEP: Final = "correct or delete the object in the message; the manager retries automatically"


@cause(
    code="LWS-E018",
    title="the scheduling objects cannot be created",
    meaning="If spec.scheduling is set, a LeaderWorkerSet requires a Workload. Gang scheduling also requires PodGroups. The manager does not change leaders until these objects are correct.",
    person=Person.ADMINISTRATOR,
    remedy="Read the message of the condition WorkloadSchedulingCreated. Typical causes are an API that is not served, and an object that was changed or belongs to another owner.",
)
def find_missing_prerequisite(observed: Observed) -> Finding | None:
    """Find a LeaderWorkerSet whose leaders are not changed because its scheduling objects cannot be created."""
    condition = meta.find_condition(observed.view.object, WORKLOAD_SCHEDULING_CREATED.type) or {}
    if condition.get("status") != "False":
        return None
    reason, message = str(condition.get("reason")), ranks.quote_message(str(condition.get("message")))
    return Finding(
        subject=set_subject(observed),
        sentence=f"the scheduling objects that spec.scheduling requires cannot be created: {message}",
        evidence=(f"condition {WORKLOAD_SCHEDULING_CREATED.type}: False, {reason}",),
        steps=(PREREQUISITE_STEPS.get(reason, OTHER_STEP), observed.lws(f"events {observed.view.name} --warnings")),
    )
