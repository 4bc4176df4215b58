"""The launcher's view of pods and containers, as the cluster process describes them."""

from typing import Any, NamedTuple

from .program import ProgramSpec


class Pod(NamedTuple):
    """A pod as asked for."""

    id: str
    hostname: str
    address: str
    directory: str
    hosts_directory: str
    host_network: bool
    share_processes: bool


class MountRequest(NamedTuple):
    """A host file or directory that a container wants to see, or a path inside it."""

    source: str
    target: str
    read_only: bool
    sub_path: str


class Container(NamedTuple):
    """A container as asked for."""

    id: str
    program: ProgramSpec
    mounts: list[MountRequest]
    root: str | None
    read_only_root: bool
    stub_ports: list[int]


def parse_pod(request: dict[str, Any]) -> Pod:
    """Return the pod of a `create` request."""
    return Pod(**request["pod"])


def parse_container(request: dict[str, Any], *, confined: bool) -> Container:
    """Return the container of a `start` request."""
    asked = dict(request["container"])
    asked["program"] = ProgramSpec(**asked["program"], confined=confined)
    asked["mounts"] = [MountRequest(*mount) for mount in asked["mounts"]]
    return Container(**asked)
