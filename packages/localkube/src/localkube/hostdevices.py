"""Describes the real devices of this machine in the public interface. Importing this module is fast."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The real devices of each node, and notes for the user. `cluster.host_gpus` detects them.

    If devices are `are_exposed`, containers that do not request devices see all devices of their node.
    """

    by_node: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    are_exposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """The state of the GPUs of this machine. `problem` is the reason why they are unusable, or an empty string.

    `failing`, `busy` (too little free memory) and `apart` (pairs without peer access) contain a text for each GPU or
    pair.
    """

    problem: str = ""
    driver: str = ""
    count: int = 0
    failing: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
