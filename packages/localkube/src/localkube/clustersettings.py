"""Defines the settings of a cluster in the form that users specify. Importing this module is fast."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from localkube.errors import SettingsError
from localkube.hostdevices import Devices
from localkube.statedirectory import KUBECONFIG

MAX_PODS: Final = 5000
"""The default maximum number of pods in a cluster, which limits the memory usage of the machine."""


if TYPE_CHECKING:
    from localkube.controllers.nodes.nodes import NodeSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The settings of the simulated nodes, which all run on this machine.

    `labels` are KEY=VALUE, and `taints` are KEY=VALUE:EFFECT or KEY:EFFECT. In a value, `{i}` is the node's number, and
    integer arithmetic is supported: `rack=r{i//2}`. `capacity` is a comma-separated list of RESOURCE=AMOUNT. `gpus` are
    simulated, `devices` are real. `also` adds nodes with different settings, whose numbers follow.
    """

    count: int = 1
    labels: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    capacity: tuple[str, ...] = ()
    gpus: int = 0
    devices: Devices = field(default_factory=Devices)
    also: tuple["Nodes", ...] = ()

    def check(self) -> None:
        """Raise a `SettingsError` that names the first invalid setting."""
        self.parse()

    def parse(self) -> "NodeSettings":
        """Return the settings as parsed values."""
        from msgspec.structs import replace

        from localkube.controllers.nodes.nodeoptions import parse_capacity, parse_label, parse_taint
        from localkube.controllers.nodes.nodes import NodeSettings
        from localkube.wellknown import GPU

        nodes = NodeSettings(count=self.count, other_nodes=tuple(group.parse() for group in self.also))
        with _name_setting_in_errors("labels"):
            nodes = replace(nodes, labels=tuple(map(parse_label, self.labels)))
            nodes.check()
        with _name_setting_in_errors("taints"):
            nodes = replace(nodes, taints=tuple(map(parse_taint, self.taints)))
            nodes.check()
        with _name_setting_in_errors("capacity"):
            nodes = replace(nodes, capacity=parse_capacity(self.capacity))
        if not (self.gpus or self.devices.by_node):
            return nodes
        if GPU in nodes.capacity:
            raise SettingsError("gpus", f"{GPU} is also specified in the capacity. Remove one of them")
        if self.gpus:
            return nodes.with_gpus(self.gpus)
        first, *others = (replace(nodes, count=1).with_gpus(len(own)) for own in self.devices.by_node)
        return replace(first, other_nodes=(*others, *nodes.other_nodes))


@contextmanager
def _name_setting_in_errors(setting: str) -> Iterator[None]:
    """Convert a `ValueError` in the context to a `SettingsError` that names the setting."""
    try:
        yield
    except ValueError as error:
        raise SettingsError(setting, str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a cluster. All files are in `directory`. Without `keep`, objects are stored only in memory.

    `port` 0 means the last used port, or any free port. `images` maps image names to directories that replace them.
    With `stub`, a server that responds on their ports replaces containers that cannot run on this machine, and
    containers of `stub_images` (`all` for every image) in any case. With `hold_completed`, containers that exited with
    code 0 are not restarted. With `quote_failures`, a container that failed without a termination message gets its last
    log lines as the message. With `memory_limits`, a container that exceeds its memory limit is killed. `environment`
    contains the variables of this process that containers inherit.
    """

    directory: Path
    name: str = "localkube"
    keep: bool = True
    port: int = 0
    nodes: Nodes = field(default_factory=Nodes)
    network: Literal["isolated", "shared"] = "isolated"
    images: Mapping[str, Path] = field(default_factory=dict)
    stub: bool = False
    stub_images: frozenset[str] = frozenset()
    hold_completed: bool = False
    quote_failures: bool = False
    memory_limits: bool = True
    max_pods: int = MAX_PODS
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the kubeconfig. The file is written when the API server is running."""
        return self.directory / KUBECONFIG
