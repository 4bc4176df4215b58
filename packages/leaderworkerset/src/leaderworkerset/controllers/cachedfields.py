"""Declares the cached object fields, which are the fields that reconciliations, indexes and events read.

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
"""Most LeaderWorkerSet fields, including the complete status, because the status is updated as a whole."""

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
"""The restart counts and the termination states of containers."""

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
"""The readiness, failures, node, group and revision of leader and worker pods."""

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
"""The readiness and revision of worker StatefulSets."""

LEADER_STATEFULSET: Final = Projection(*_ROLLED, "metadata.annotations", "spec.selector", "status.currentReplicas")
"""The rollout state of leader StatefulSets, and the fields that identify a state (`edition.Identity`)."""

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
"""The leader Deployments of groups with random keys."""

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
"""The nodes and resource requests of all pods, for the built-in gate (`core.gang.gate`)."""

NODE: Final = Projection("metadata.labels", "spec.taints", "spec.unschedulable", "status.allocatable")
"""The allocatable resources of nodes, and fields that prevent the scheduling of pods, for the built-in gate."""

EVICTABLE_POD: Final = Projection(
    "metadata.creationTimestamp",
    f"metadata.annotations['{labels.SAFE_TO_EVICT}']",
    f"metadata.annotations['{labels.KARPENTER_DO_NOT_DISRUPT}']",
    f"metadata.annotations['{labels.MARKED_STARTING}']",
    "spec.nodeName",
    "spec.tolerations",
)
"""Whether the nodes of pods in groups with a disruption budget are being drained."""

CLOSABLE_NODE: Final = Projection("spec.taints", "spec.unschedulable")
"""Whether nodes accept pods, for disruption budgets and moves."""

DISRUPTION_BUDGET: Final = Projection(
    "metadata.labels",
    "metadata.generation",
    "spec",
    "status.observedGeneration",
    "status.disruptedPods",
    "status.currentHealthy",
)
"""Whether the disruption budgets of groups are open, and the pod counts in their status."""

MOVABLE_POD: Final = Projection(
    f"metadata.annotations['{labels.MOVE_GROUP}']", "spec.nodeName", "spec.tolerations", "status.phase"
)
"""The nodes of pods in movable groups, and whether the pods must be moved from them."""


SERVICE: Final = Projection("metadata.labels", "spec.clusterIP", "spec.selector")
"""The Services, which are created once. A user's Service is used if it is headless or selects the pods."""

ROLE_SERVICE: Final = Projection("metadata.labels")
"""The slice and revision of role Services (`core.disaggregatedset.roleservices`)."""

REVISION: Final = Projection(
    "metadata.creationTimestamp", "metadata.labels", "metadata.annotations", "data", "revision"
)
"""The revisions with their templates as data, and the recreation records with their annotations as data."""


GANG_OBJECT: Final = Projection("metadata.labels", "spec")
"""The groups of gang scheduler objects, and their desired state for `spec.scheduling`."""


def same_fields(projection: Projection) -> Keep:
    """Return the same cached fields for all objects of a kind."""
    return lambda _obj: projection


leaderworkerset: Final = same_fields(LEADERWORKERSET)


def statefulset_fields(obj: JSONObject) -> Projection:
    """Return the cached fields of a StatefulSet, which are fewer for worker StatefulSets."""
    owner = meta.controller_of(obj)
    return WORKER_STATEFULSET if owner is not None and owner["kind"] == PODS.kind else LEADER_STATEFULSET
