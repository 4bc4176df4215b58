"""Defines the settings of a kubelet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from kuberuntime.objects.meta import JSON
from localkube.kubelet.processes.runner import Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """The settings of a kubelet: its simulated nodes, and how containers are run as processes.

    `capabilities` are those of the started runner. `state_directory` has pods' scratch space, logs and hosts files.
    `images` maps images to directories. With `stub` the stub server replaces containers that cannot run here. It always
    replaces containers of `stub_images` (`all`: every container). With `hold_completed` containers that exit with code
    0 are not restarted. With `quote_failures` a container that fails without a termination message gets its last log
    lines as message. `environment.PASSED` selects from `host_environment`; `host_user` is the user who runs the
    cluster. `allocatable` has, by node, what its pods can have; `devices` are the real devices of each node, empty if
    GPUs are simulated. With `devices_exposed` containers that request none see all of their node. With
    `memory_limits` a container that uses more memory than its limit is ended. When the cluster ends, each container
    gets its stop signal and its pod's grace period, but at most `grace_at_end`.
    """

    node_names: frozenset[str]
    capabilities: Capabilities
    state_directory: Path
    images: Mapping[str, Path] = field(default_factory=dict)
    stub: bool = False
    stub_images: frozenset[str] = frozenset()
    hold_completed: bool = False
    quote_failures: bool = False
    cluster_domain: str = "cluster.local"
    host_ip: str = "127.0.0.1"
    host_user: int = 0
    host_environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    allocatable: Mapping[str, Mapping[str, JSON]] = field(default_factory=dict)
    devices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    devices_exposed: bool = False
    memory_limits: bool = True
    grace_at_end: timedelta = timedelta(0)

    @property
    def volume_directory(self) -> Path | None:
        """Return the parent directory of persistent volumes without a path on this machine, if `stub` is set."""
        return self.state_directory / "stand-ins" if self.stub else None

    def pod_directory(self, uid: str) -> Path:
        """Return the directory of one pod."""
        return self.state_directory / "pods" / uid
