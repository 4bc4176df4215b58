"""The fields of objects that the caches keep: only the fields that decisions, indexes and events read.

Capabilities declare the fields that only they read. If a decision reads a field that is not declared, the field is
absent. `test_cachedfields.py` records every path that decisions read, and fails if a path is not declared. Equal parts of kept
objects are stored once.
"""

from typing import Final

from kuberuntime.cache.projection import Keep, Projection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.capabilities.enabled import ENABLED
from leaderworkerset.core.gang.volcano import GROUP_NAME
from leaderworkerset.core.policies.accelerators import RESOURCE

LEADERWORKERSET: Final = Projection(
    "metadata.creationTimestamp",
    "metadata.labels",
    "metadata.annotations",
    "metadata.finalizers",
    "metadata.managedFields[].subresource",
    "metadata.managedFields[].time",
    "spec",
    "status",
)
"""Most fields of a LeaderWorkerSet, because the status is written back with it, and the time of the last status write.
"""

TPU_REQUESTS: Final = tuple(
    f"spec.{containers}[].resources.{amounts}['{RESOURCE}']"
    for containers in ("containers", "initContainers")
    for amounts in ("limits", "requests")
)

CONTAINER_ENDS: Final = tuple(
    f"status.{containers}[].{field}"
    for containers in ("containerStatuses", "initContainerStatuses")
    for field in (
        "name",
        "restartCount",
        "state.terminated.finishedAt",
        *(
            f"{state}.terminated.{field}"
            for state in ("state", "lastState")
            for field in ("exitCode", "reason", "message", "startedAt", "finishedAt")
        ),
    )
)
"""The restart counts of containers, and how they terminated."""

POD: Final = Projection(
    "metadata.creationTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.labels",
    "metadata.finalizers",
    f"metadata.annotations['{labels.GROUP_RESTART_BUDGET_EXHAUSTED}']",
    f"metadata.annotations['{labels.RECOVER}']",
    f"metadata.annotations['{labels.LEADER_NAME}']",
    f"metadata.annotations['{labels.SIZE}']",
    f"metadata.annotations['{labels.GROUP_IDENTITY}']",
    f"metadata.annotations['{labels.REPLACES}']",
    f"metadata.annotations['{labels.POD_DELETION_COST}']",
    f"metadata.annotations['{labels.GANG_SCHEDULER}']",
    f"metadata.annotations['{labels.GANG_GROUP}']",
    f"metadata.annotations['{GROUP_NAME}']",
    f"metadata.annotations['{labels.WORKLOAD_AWARE_SCHEDULING}']",
    f"metadata.annotations['{labels.WORKLOAD_NAME}']",
    "spec.schedulingGroup.podGroupName",
    "spec.hostname",
    "spec.subdomain",
    "spec.nodeName",
    "spec.schedulingGates",
    "spec.readinessGates",
    "spec.containers[].name",
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    *TPU_REQUESTS,
    "status.phase",
    "status.conditions[].type",
    "status.conditions[].status",
    "status.conditions[].reason",
    "status.reason",
    "status.message",
    *CONTAINER_ENDS,
    *(f"metadata.annotations['{mark}']" for capability in ENABLED for mark in capability.pod_marks),
    *(path for capability in ENABLED for path in capability.pod_fields),
)
"""Leaders and workers: whether they are ready or failed, and their node, group and revision."""

_ROLLED: Final = (
    *(f"metadata.annotations['{mark}']" for capability in ENABLED for mark in capability.statefulset_marks),
    *(path for capability in ENABLED for path in capability.statefulset_fields),
    "metadata.labels",
    f"metadata.annotations['{labels.REPLICAS}']",
    "spec.replicas",
    "spec.updateStrategy",
    "status.observedGeneration",
    "status.replicas",
    "status.availableReplicas",
    "status.updatedReplicas",
    "status.currentRevision",
    "status.updateRevision",
)

WORKER_STATEFULSET: Final = Projection("metadata.creationTimestamp", *_ROLLED)
"""The worker StatefulSet of a group: its readiness and its revision."""

LEADER_STATEFULSET: Final = Projection(*_ROLLED, "metadata.annotations", "spec.selector", "status.currentReplicas")
"""The leader StatefulSet: its rollout, and the fields that distinguish its states (`edition.Identity`)."""

DEPLOYMENT: Final = Projection(
    "metadata.labels",
    "metadata.annotations",
    "spec.replicas",
    "spec.selector",
    "status.observedGeneration",
    "status.replicas",
    "status.readyReplicas",
    "status.updatedReplicas",
    "status.conditions[].type",
    "status.conditions[].status",
    "status.conditions[].lastTransitionTime",
)
"""The leader Deployment of groups with random keys."""

PLACED_POD: Final = Projection(
    "metadata.creationTimestamp",
    f"metadata.labels['{labels.WORKER_INDEX}']",
    f"metadata.annotations['{labels.SIZE}']",
    f"metadata.annotations['{labels.GANG_GROUP}']",
    "spec.nodeName",
    "spec.schedulingGates",
    "spec.priority",
    "spec.containers[].resources.requests",
    "spec.initContainers[].resources.requests",
    "spec.initContainers[].restartPolicy",
    "spec.resources.requests",
    "spec.overhead",
    "spec.nodeSelector",
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    "spec.tolerations",
)
"""Any pod of the cluster, for the built-in gate: its node and its requests (`core.gang.gate`)."""

NODE: Final = Projection("metadata.labels", "spec.taints", "spec.unschedulable", "status.allocatable")
"""A node, for the built-in gate: its allocatable resources, and the fields that exclude pods."""

EVICTABLE_POD: Final = Projection(
    "metadata.creationTimestamp",
    f"metadata.annotations['{labels.SAFE_TO_EVICT}']",
    f"metadata.annotations['{labels.KARPENTER_DO_NOT_DISRUPT}']",
    f"metadata.annotations['{labels.MARKED_STARTING}']",
    "spec.nodeName",
    "spec.tolerations",
)
"""A pod of a group with a disruption budget: whether its node is being drained."""

CLOSABLE_NODE: Final = Projection("spec.taints", "spec.unschedulable")
"""A node, for disruption budgets and moves: whether it accepts pods."""

DISRUPTION_BUDGET: Final = Projection(
    "metadata.labels",
    "metadata.generation",
    "spec",
    "status.observedGeneration",
    "status.disruptedPods",
    "status.currentHealthy",
)
"""The disruption budget of a group: whether it is open, and the API server's counts of the group's pods."""

MOVABLE_POD: Final = Projection(
    f"metadata.annotations['{labels.MOVE_GROUP}']", "spec.nodeName", "spec.tolerations", "status.phase"
)
"""A pod of a group that may be moved off nodes: its node, and whether it must leave it."""


SERVICE: Final = Projection("metadata.labels", "spec.clusterIP", "spec.selector")
"""Services, which are created if absent and never changed. A user's Service is used if headless or selecting the pods.
"""

ROLE_SERVICE: Final = Projection("metadata.labels")
"""Role Services: their slice and revision (`core.disaggregatedset.roleservices`)."""

REVISION: Final = Projection(
    "metadata.creationTimestamp", "metadata.labels", "metadata.annotations", "data", "revision"
)
"""Revisions, whose data are templates, and recreation records, whose data are annotations."""


GANG_OBJECT: Final = Projection("metadata.labels", "spec")
"""Gang scheduler objects: their group. Objects for `spec.scheduling` are compared with their desired state."""


def always(projection: Projection) -> Keep:
    """Return the same kept fields for every object of a kind."""
    return lambda _obj: projection


leaderworkerset: Final = always(LEADERWORKERSET)


def statefulset(obj: JSONObject) -> Projection:
    """Return the kept fields of a StatefulSet. Fewer fields are kept for a worker StatefulSet, which a pod controls."""
    owner = meta.controller_of(obj)
    return WORKER_STATEFULSET if owner is not None and owner["kind"] == PODS.kind else LEADER_STATEFULSET
