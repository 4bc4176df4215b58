"""Represents the accelerators of this machine as values, and distributes them over the simulated nodes.

A device is the unit that a container can use: a whole GPU, a MIG instance, or with `host:N` one of N shares of a GPU.
The identifier of a device is a UUID. Identifiers of shares have a suffix: `GPU-1234::0`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

SHARE: Final = "::"
MOST_SHARES: Final = 64
FORM: Final = "must be host, or host:N with N from 1 to 64"


class Accelerator(Struct, frozen=True, kw_only=True):
    """A GPU or a MIG instance. `gpu` is the UUID of the whole GPU. `memory` is in bytes."""

    uuid: str
    gpu: str
    index: int
    name: str
    memory: int
    free: int


class Inventory(Struct, frozen=True, kw_only=True):
    """The accelerators of a machine.

    `distances` contains the NVML distance of two GPUs by UUID. `processes` contains the PIDs of processes that use a
    GPU, by UUID. `failing` contains the reason for each unresponsive GPU, by number. `apart` contains pairs of GPUs
    without peer memory access.
    """

    driver: str
    accelerators: tuple[Accelerator, ...]
    distances: Mapping[tuple[str, str], int]
    processes: Mapping[str, tuple[int, ...]]
    failing: Mapping[str, str]
    apart: tuple[tuple[str, str], ...] = ()


def parse_shares(text: str) -> int:
    """Return the number of shares into which each GPU is divided.

    >>> parse_shares("host"), parse_shares("host:4")
    (1, 4)
    """
    word, separator, number = text.partition(":")
    if word != "host" or (separator and not (number.isascii() and number.isdecimal() and len(number) < len("1000"))):
        raise ValueError(f"Invalid value: {text!r}: {FORM}")
    shares = int(number) if separator else 1
    if not 1 <= shares <= MOST_SHARES:
        raise ValueError(f"Invalid value: {text!r}: {FORM}")
    return shares


def device_uuid(device: str) -> str:
    """Return the UUID with which a process selects a device.

    >>> device_uuid("GPU-1::3")
    'GPU-1'
    """
    return device.partition(SHARE)[0]


def divide_devices(inventory: Inventory, nodes: int, shares: int) -> tuple[tuple[str, ...], ...]:
    """Return the devices of each node. All shares of a GPU are on one node, as are nearby GPUs if possible."""
    gpus = list(dict.fromkeys(accelerator.gpu for accelerator in inventory.accelerators))
    if len(gpus) < nodes:
        have = f"{len(gpus)} GPU{'s' * (len(gpus) != 1)}"
        raise ValueError(
            f"this machine has {have}, but nodes cannot share a GPU. The maximum number of nodes is {len(gpus)}"
        )
    size, more = divmod(len(gpus), nodes)
    by_node = []
    for node in range(nodes):
        own = _nearby_gpus(gpus, size + (node < more), inventory.distances)
        gpus = [gpu for gpu in gpus if gpu not in own]
        uuids = [accelerator.uuid for accelerator in inventory.accelerators if accelerator.gpu in own]
        by_node.append(tuple(device for uuid in uuids for device in _shares(uuid, shares)))
    return tuple(by_node)


def _nearby_gpus(gpus: Sequence[str], size: int, distances: Mapping[tuple[str, str], int]) -> set[str]:
    """Return `size` GPUs. After the first GPU, the nearest GPU to the selected ones is added repeatedly."""
    own = [gpus[0]]
    while len(own) < size:
        rest = [gpu for gpu in gpus if gpu not in own]
        own.append(min(rest, key=lambda gpu: sum(distances.get((gpu, other), 0) for other in own)))
    return set(own)


def _shares(uuid: str, shares: int) -> list[str]:
    return [uuid] if shares == 1 else [f"{uuid}{SHARE}{number}" for number in range(shares)]
