"""Names in objects of the embedded cluster: labels, annotations and provisioners of its domain, and former names.

Nobody else can own `localkube.internal`: `.internal` is reserved for private use. State directories keep objects of
earlier versions, so former names are still read, but never written.
"""

from typing import Final

KUBERNETES_VERSION: Final = (1, 36)
"""The version of Kubernetes whose behavior is implemented."""

DOMAIN: Final = "localkube.internal"
FORMER_DOMAIN: Final = "embedded.leaderworkerset.x-k8s.io"

SIMULATED: Final = f"{DOMAIN}/simulated"
"""The label of the simulated nodes; nodes without it are ignored."""

FORMER_SIMULATED: Final = f"{FORMER_DOMAIN}/simulated"

PROVISIONER: Final = f"{DOMAIN}/directory"
"""The provisioner of volumes that are directories of this machine."""

PROVISIONERS: Final = (PROVISIONER, f"{FORMER_DOMAIN}/directory")
"""The provisioner, and its former name."""

DEFAULT_CLASS_NAME: Final = "standard"
"""The default storage class of every cluster, for claims that name none."""

HOLD_COMPLETED: Final = f"{DOMAIN}/hold-completed"
"""Annotation of a pod (value `true`): its containers that exit with code 0 are not restarted, even with the restart
policy Always. Pods of StatefulSets cannot have OnFailure, so the end of their programs could not be observed
otherwise."""

FORMER_HOLD_COMPLETED: Final = f"{FORMER_DOMAIN}/hold-completed"

GPU: Final = "nvidia.com/gpu"
"""The resource of which the devices are GPUs."""

GPU_MEMORY: Final = "nvidia.com/gpu-memory"
"""The resource in the metrics of a container: bytes in use of the memory of its GPUs."""

DEVICES: Final = f"{DOMAIN}/devices"
"""Annotation of a pod: the real devices of each of its containers, as JSON. The kubelet writes it."""

DEVICES_IDLE: Final = f"{DOMAIN}/devices-idle-since"
"""Annotation of a pod: its real devices that compute nothing, each with the time since when, as JSON. The kubelet writes it."""

ACCELERATORS_HEALTHY: Final = "AcceleratorsHealthy"
"""The condition of a node with real devices; its message names the failed devices."""
