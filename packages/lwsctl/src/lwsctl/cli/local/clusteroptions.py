"""Defines the options of an embedded cluster, which `lws up` and `lws run` share."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from msgspec import Struct
from msgspec.structs import fields

from lwsctl.cli.errors import CommandError, UsageError

MAX_PODS: Final = 5000
"""The default of --max-pods. It exceeds the practical capacity of one machine and fits in memory."""

AUTO: Final = -1
"""The value for as many nodes or GPUs as the manifest requires. `lws run` determines the number."""


MISSING: Final = "missing"
"""The value of --stub if it has no argument. Only containers that cannot run on this machine are replaced."""


class CountOrAuto(click.IntRange):
    """A parameter type for a number or `auto`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the value."""
        if value == "auto":
            return AUTO
        return AUTO if value == AUTO else int(super().convert(value, param, ctx))


class Gpus(CountOrAuto):
    """A parameter type for a number, `auto`, `host` or `host:N`. Values for host GPUs remain strings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the value."""
        if isinstance(value, str) and value.partition(":")[0] == "host":
            return value
        if isinstance(value, str) and value != "auto" and not value.lstrip("-").isdecimal():
            self.fail(f"{value!r} is not valid; use a number, auto, host or host:N", param, ctx)
        return super().convert(value, param, ctx)


Command = TypeVar("Command", bound=Callable[..., Any])


class ClusterOptions(Struct, frozen=True, kw_only=True):
    """The options of an embedded cluster. `gpus_per_node` is a number, or a string for the GPUs of the host."""

    nodes: int = 1
    node_labels: tuple[str, ...] = ()
    node_taints: tuple[str, ...] = ()
    node_capacity: tuple[str, ...] = ()
    gpus_per_node: int | str = 0
    expose_gpus: bool = False
    ignore_memory_limits: bool = False
    network: str = "isolated"
    images: tuple[tuple[str, Path], ...] = ()
    stub: tuple[str, ...] = ()
    max_pods: int = MAX_PODS
    port: int = 0
    log_level: str = "warning"
    log_format: str = "text"

    def arguments(self) -> list[str]:
        """Return the same options as command-line arguments for a detached process."""
        words = [f"--nodes={self.nodes}", f"--gpus-per-node={self.gpus_per_node}", f"--network={self.network}"]
        words += ["--expose-gpus"] if self.expose_gpus else []
        words += ["--ignore-memory-limits"] if self.ignore_memory_limits else []
        words += [f"--node-label={label}" for label in self.node_labels]
        words += [f"--node-taint={taint}" for taint in self.node_taints]
        words += [f"--node-capacity={capacity}" for capacity in self.node_capacity]
        words += [f"--image={name}={directory}" for name, directory in self.images]
        words += [f"--max-pods={self.max_pods}"]
        words += [f"--port={self.port}", f"--log-level={self.log_level}", f"--log-format={self.log_format}"]
        return [*words, *("--stub" if name == MISSING else f"--stub={name}" for name in self.stub)]


OPTIONS = (
    click.option(
        "--nodes",
        type=CountOrAuto(1, 1000),
        default=1,
        show_default=True,
        metavar="N|auto",
        help="Number of simulated nodes. With `lws run`, auto creates as many nodes as the manifests require.",
    ),
    click.option(
        "--node-label",
        "node_labels",
        multiple=True,
        metavar="KEY=VALUE",
        help="Label to add to every node. {i} is replaced with the number of the node, and can be part of an expression, such as "
        "rack=r{i//2}. "
        "May be repeated.",
    ),
    click.option(
        "--node-taint",
        "node_taints",
        multiple=True,
        metavar="KEY=VALUE:EFFECT",
        help="Taint to add to every node. The value can contain {i} (see --node-label), for example pool=p{i//2}:NoSchedule. "
        "May be repeated.",
    ),
    click.option(
        "--node-capacity",
        multiple=True,
        metavar="RESOURCE=AMOUNT,…",
        help="Capacity of every node, such as cpu=8,memory=32Gi. By default, CPU, memory and the number of pods are "
        "practically unlimited.",
    ),
    click.option(
        "--gpus-per-node",
        "--gpus",
        "gpus_per_node",
        type=Gpus(0, 1024),
        default=0,
        show_default=True,
        metavar="N|auto|host[:N]",
        help=(
            "Number of nvidia.com/gpu devices per node. With `lws run`, auto creates as many devices as the manifests require. With host, the GPUs of this "
            "machine are divided among the nodes. With host:N, up to N containers can share a GPU."
        ),
    ),
    click.option(
        "--expose-gpus",
        is_flag=True,
        help="With --gpus host, expose all GPUs of a node to containers that do not request GPUs.",
    ),
    click.option(
        "--ignore-memory-limits",
        is_flag=True,
        help="Do not kill containers that exceed their memory limits.",
    ),
    click.option(
        "--network",
        type=click.Choice(["isolated", "shared"]),
        default="isolated",
        show_default=True,
        help="Pod network. With isolated, each pod has its own network namespace. With shared, pods use the host network, and have loopback addresses (127.x.y.z).",
    ),
    click.option(
        "--image",
        "images",
        multiple=True,
        metavar="NAME=DIR",
        help="Map an image to a directory: a root file system, a virtual environment, or a directory of "
        "executables. May be repeated.",
    ),
    click.option(
        "--stub",
        multiple=True,
        is_flag=False,
        flag_value=MISSING,
        metavar="[=all|IMAGE]",
        help="Replace containers that cannot run on this machine with a stub server. With IMAGE, also replace the "
        "containers that use this image. With all, replace all containers. May be repeated.",
    ),
    click.option(
        "--max-pods",
        type=click.IntRange(1, 60000),
        default=MAX_PODS,
        show_default=True,
        metavar="N",
        help="Maximum number of pods in the cluster. Additional pods are rejected.",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        metavar="N",
        help="Port of the API server. Defaults to 0, which selects the previous port of the cluster, or a free port.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="warning",
        show_default=True,
        help="Log level of the controllers and the kubelet.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Format of the log messages.",
    ),
)


def cluster_options(command: Command) -> Command:
    """Add the options of an embedded cluster to a command. Their values are passed as keyword arguments."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def collect(options: dict[str, Any]) -> ClusterOptions:
    """Remove the cluster options from a command's keyword arguments, and return them."""
    own = {field.name: options.pop(field.name) for field in fields(ClusterOptions)}
    return ClusterOptions(**own | {"images": tuple(map(parse_image, own["images"]))})


def parse_image(argument: str) -> tuple[str, Path]:
    """Parse NAME=DIR."""
    name, separator, directory = argument.partition("=")
    path = Path(directory).expanduser().absolute()
    if not separator or not name or not directory:
        raise UsageError(f"--image {argument}: use NAME=DIR, such as --image vllm/vllm-openai=./my-venv")
    if not path.is_dir():
        raise UsageError(f"--image {argument}: {path} is not a directory")
    return name, path


def require_localkube(command: str) -> None:
    """Raise a `CommandError` that names the package to install if local clusters are unavailable."""
    if find_spec("localkube") is None:
        raise CommandError(
            f"lws {command} requires the package localkube, which is not installed; run `pip install 'lwsctl[local]'`"
        )
