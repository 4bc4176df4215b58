"""Lists the faults of `lws chaos` with their command-line names. Importing this module is fast.

The cluster implements the faults under the same names (`localkube/faults/`).
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, assert_never


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
    """The notation of a fault amount, and its conversion to a value for the cluster."""

    NONE = auto()
    SHARE = auto()
    """A percentage, for example 30% for 0.3."""
    DURATION = auto()
    """A duration, for example 200ms for 0.2 seconds."""
    RATE = auto()
    """A rate, for example 100k for 100,000 bytes per second."""

    @property
    def description(self) -> str:
        """Return the amount description for the command help."""
        match self:
            case Amount.SHARE:
                return "Percentage."
            case Amount.DURATION:
                return "Delay added to each packet."
            case Amount.RATE:
                return "Bandwidth in bytes per second."
            case Amount.NONE:
                return "The amount."
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class FaultName:
    """A fault as it is specified on the command line. `usual` is its default amount or path."""

    name: str
    summary: str
    of: FaultTarget
    amount: Amount = Amount.NONE
    usual: str = ""
    has_path: bool = False
    is_moment: bool = False
    """The fault occurs once, and has no duration."""

    @property
    def example(self) -> str:
        """Return an example command line for this fault."""
        return f"lws chaos {self.name} {self.of.sample}".rstrip()


FAULTS: Final = {
    fault.name: fault
    for fault in (
        FaultName(
            "kill", "Kill the main process of each container in a rank (SIGKILL).", FaultTarget.RANK, is_moment=True
        ),
        FaultName(
            "stop",
            "Pause the processes of a rank (SIGSTOP). Connections remain open, but the rank does not respond.",
            FaultTarget.RANK,
        ),
        FaultName("starve", "Limit the CPU time of a rank to a percentage.", FaultTarget.RANK, Amount.SHARE, "5%"),
        FaultName(
            "partition", "Drop all packets between two ranks, or between one rank and all others.", FaultTarget.RANKS
        ),
        FaultName(
            "lose",
            "Drop a percentage of packets between two ranks, or of one rank.",
            FaultTarget.RANKS,
            Amount.SHARE,
            "20%",
        ),
        FaultName(
            "throttle",
            "Limit the bandwidth between two ranks, or of one rank, in bytes per second.",
            FaultTarget.RANKS,
            Amount.RATE,
            "100k",
        ),
        FaultName("delay", "Delay all packets to a rank.", FaultTarget.RANK, Amount.DURATION, "200ms"),
        FaultName("fill", "Fill /tmp or /dev/shm of a rank.", FaultTarget.RANK, usual="/tmp", has_path=True),  # noqa: S108 - in a container
        FaultName("drain", "Drain a node. Its pods are evicted and recreated on other nodes.", FaultTarget.NODE),
        FaultName("lose-node", "Stop a node and all its pods.", FaultTarget.NODE),
        FaultName("apiserver", "Make the API server unavailable.", FaultTarget.PART),
        FaultName("webhooks", "Make the webhooks unavailable.", FaultTarget.PART),
        FaultName("manager", "Stop the controllers of LeaderWorkerSets.", FaultTarget.PART),
    )
}
