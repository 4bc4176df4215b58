"""The settings of a kubelet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from kuberuntime.objects.meta import JSON
from localkube.kubelet.processes.runner import Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """The simulated nodes this kubelet serves, and how containers become processes.

    `capabilities` is what the started runner granted. `state_directory` holds pods' scratch space, logs and hosts
    files. `images` maps images to directories. With `stub` the stub server stands in for what cannot run here; with
    `hold_completed` containers that end with exit code 0 stay ended; with `quote_failures` one that fails without a
    termination message gets its last log lines as message. `host_environment` is what `environment.PASSED` picks from, `host_user` the user that runs all this. `allocatable` answers for limits that containers do not set.
    When the cluster ends, each container gets its stop signal and its pod's grace period, but at most `grace_at_end`.
    """

    node_names: frozenset[str]
    capabilities: Capabilities
    state_directory: Path
    images: Mapping[str, Path] = field(default_factory=dict)
    stub: bool = False
    hold_completed: bool = False
    quote_failures: bool = False
    cluster_domain: str = "cluster.local"
    host_ip: str = "127.0.0.1"
    host_user: int = 0
    host_environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    allocatable: Mapping[str, JSON] = field(default_factory=dict)
    grace_at_end: timedelta = timedelta(0)

    def pod_directory(self, uid: str) -> Path:
        """Return where everything of one pod is on disk."""
        return self.state_directory / "pods" / uid
