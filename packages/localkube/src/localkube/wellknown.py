"""Defines the labels, annotations and provisioners of the embedded cluster, and their previous names.

Nobody else can own `localkube.internal`: `.internal` is reserved for private use. State directories keep objects of
earlier versions, so former names are still read, but never written.
"""

from typing import Final

KUBERNETES_VERSION: Final = (1, 36)
"""The Kubernetes version whose behavior is implemented."""

DOMAIN: Final = "localkube.internal"
FORMER_DOMAIN: Final = "embedded.leaderworkerset.x-k8s.io"

SIMULATED: Final = f"{DOMAIN}/simulated"
"""The label of the simulated nodes. Nodes without it are ignored."""

FORMER_SIMULATED: Final = f"{FORMER_DOMAIN}/simulated"

PROVISIONER: Final = f"{DOMAIN}/directory"
"""The provisioner of volumes that are directories on this machine."""

PROVISIONERS: Final = (PROVISIONER, f"{FORMER_DOMAIN}/directory")
"""The provisioner and its previous name."""

DEFAULT_CLASS_NAME: Final = "standard"
"""The default storage class of every cluster, for claims without a class."""

HOLD_COMPLETED: Final = f"{DOMAIN}/hold-completed"
"""An annotation of a pod (value `true`).

Its containers that exit with code 0 are not restarted, even with the restart policy Always. Pods of StatefulSets
cannot use OnFailure, so that their completion could not be observed otherwise.
"""

FORMER_HOLD_COMPLETED: Final = f"{FORMER_DOMAIN}/hold-completed"

GPU: Final = "nvidia.com/gpu"
"""The resource whose devices are GPUs."""

GPU_MEMORY: Final = "nvidia.com/gpu-memory"
"""The metrics resource of a container with the used GPU memory in bytes."""

DEVICES: Final = f"{DOMAIN}/devices"
"""The pod annotation that lists the real devices of each container, as JSON. The kubelet writes it."""

DEVICES_IDLE: Final = f"{DOMAIN}/devices-idle-since"
"""The pod annotation that lists idle real devices with their start time, as JSON. The kubelet writes it."""

ACCELERATORS_HEALTHY: Final = "AcceleratorsHealthy"
"""The condition of a node with real devices. Its message lists the failed devices."""
