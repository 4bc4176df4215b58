"""Lists the faults of `lws chaos` with their command-line names. Importing this module is fast.

The cluster implements the faults under the same names (`localkube/faults/`).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class FaultTarget(Enum):
    """The targets of a fault, with their number, the command argument, a description, and an example."""

    RANK = ((1,), "RANK", "one rank", "web/0/1")
    RANKS = ((1, 2), "RANK [RANK]", "one or two ranks", "web/0/0 web/0/1")
    """A single rank, or the connection between two ranks."""
    NODE = ((1,), "NODE", "one node", "node-0")
    PART = ((0,), "", "no target", "")
    """A component of the cluster."""

    def __init__(self, numbers: tuple[int, ...], argument: str, words: str, sample: str) -> None:
        self.numbers = numbers
        self.argument = argument
        self.words = f"{words} ({sample})" if sample else words
        self.sample = sample


class Amount(Enum):
    """The notation of a fault amount, and its conversion to a value for the cluster.

    The values are placeholders in the help.
    """

    NONE = ""
    SHARE = "PERCENTAGE"
    """A percentage, for example 30% for 0.3."""
    DURATION = "DURATION"
    """A duration, for example 200ms for 0.2 seconds."""
    RATE = "RATE"
    """A rate, for example 100k for 100,000 bytes per second."""


@dataclass(frozen=True, slots=True)
class FaultName:
    """A fault as it is specified on the command line. `usual` is its default amount or path, which `value_help` describes."""

    name: str
    summary: str
    of: FaultTarget
    amount: Amount = Amount.NONE
    usual: str = ""
    value_help: str = ""
    has_path: bool = False
    is_instantaneous: bool = False
    """The fault occurs once, and has no duration."""

    @property
    def example(self) -> str:
        """Return an example command line for this fault."""
        return f"lws chaos {self.name} {self.of.sample}".rstrip()


FAULTS: Final = {
    fault.name: fault
    for fault in (
        FaultName(
            "kill",
            "Kill the main process of each container in a rank (SIGKILL).",
            FaultTarget.RANK,
            is_instantaneous=True,
        ),
        FaultName(
            "stop",
            "Pause the processes of a rank (SIGSTOP). Connections remain open, but the rank does not respond.",
            FaultTarget.RANK,
        ),
        FaultName(
            "starve",
            "Throttle the CPU time of a rank.",
            FaultTarget.RANK,
            Amount.SHARE,
            "5%",
            "Percentage of time for which the processes of the rank are allowed to run.",
        ),
        FaultName(
            "partition",
            "Drop all packets between two ranks, or between one rank and all other ranks.",
            FaultTarget.RANKS,
        ),
        FaultName(
            "lose",
            "Drop a percentage of the packets between two ranks, or between one rank and all other ranks.",
            FaultTarget.RANKS,
            Amount.SHARE,
            "20%",
            "Percentage of packets to drop.",
        ),
        FaultName(
            "throttle",
            "Limit the bandwidth between two ranks, or between one rank and all other ranks.",
            FaultTarget.RANKS,
            Amount.RATE,
            "100k",
            "Maximum bandwidth in bytes per second.",
        ),
        FaultName(
            "delay",
            "Delay all packets to a rank.",
            FaultTarget.RANK,
            Amount.DURATION,
            "200ms",
            "Delay of each packet.",
        ),
        FaultName(
            "fill",
            "Fill the directory /tmp or /dev/shm in the containers of a rank.",
            FaultTarget.RANK,
            usual="/tmp",  # noqa: S108 - in a container
            value_help="Directory to fill.",
            has_path=True,
        ),
        FaultName("drain", "Drain a node. The pods on the node are recreated on other nodes.", FaultTarget.NODE),
        FaultName("lose-node", "Simulate the loss of a node and of all pods on the node.", FaultTarget.NODE),
        FaultName("apiserver", "Make the API server unavailable.", FaultTarget.PART),
        FaultName("webhooks", "Make the webhooks unavailable.", FaultTarget.PART),
        FaultName("manager", "Stop the LeaderWorkerSet controllers.", FaultTarget.PART),
    )
}
