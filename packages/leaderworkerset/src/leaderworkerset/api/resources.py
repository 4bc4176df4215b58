"""Defines the resources of the LeaderWorkerSet API groups. `kuberuntime` defines the Kubernetes resources."""

from typing import Final

from kuberuntime.objects.resources import Resource

LEADERWORKERSETS: Final = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
DISAGGREGATED_SETS: Final = Resource("disaggregatedset.x-k8s.io", "v1", "disaggregatedsets", "DisaggregatedSet")
ROLE_SCALERS: Final = Resource(
    "disaggregatedset.x-k8s.io", "v1", "disaggregatedsetrolescalers", "DisaggregatedSetRoleScaler"
)

OF_STATEFULSETS: Final = "controller.kubernetes.io/hash"
"""A label of the StatefulSets' ControllerRevisions, which also have the labels of the pod template."""
