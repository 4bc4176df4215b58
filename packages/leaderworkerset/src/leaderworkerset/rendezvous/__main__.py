"""Waits for the leader or all ranks. For example, run `python -m leaderworkerset.rendezvous leader --port 29500`.

Input: the variables that every container of a group has, and arguments. Output: exit code 0 when they were met;
otherwise one line on standard error, the same in the container's termination message, and the exit code of an
`FailureReason`.
"""

import argparse
import contextlib
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from leaderworkerset.rendezvous.connectionerrors import FailureReason

TERMINATION_LOG: Final = Path("/dev/termination-log")
"""The termination message file, which the kubelet reads and `lws explain` quotes."""

ATTEMPT: Final = 2.0
"""The timeout of a connection in seconds."""

PAUSES: Final = (0.1, 2.0)
"""The first and the maximum delay between two rounds in seconds. Each delay is 1.5 times the previous delay."""

LONGEST: Final = 7 * 24 * 3600.0
"""The maximum timeout in seconds. It is more than a week, and less than the limit for threads."""

NUMBER: Final = re.compile(r"[0-9]{1,9}")
NO_DATA: Final = {getattr(socket, name) for name in ("EAI_NODATA", "EAI_ADDRFAMILY") if hasattr(socket, name)}
"""The errors for a name without an address. Some C libraries report it as a missing name."""


class RendezvousError(Exception):
    """The rendezvous failed. The message is for users, and the reason is machine-readable."""

    def __init__(self, reason: FailureReason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def read_group(environment: Mapping[str, str]) -> tuple[str, int, int]:
    """Return the leader's address, the group size and the rank of this process.

    Raise RendezvousError if they are missing.
    """
    address = environment.get("LWS_LEADER_ADDRESS", "")
    if not address:
        raise RendezvousError(FailureReason.NO_GROUP, "LWS_LEADER_ADDRESS is not set")
    size, rank = (_number(environment, name) for name in ("LWS_GROUP_SIZE", "LWS_WORKER_INDEX"))
    if rank >= size:
        raise RendezvousError(
            FailureReason.WRONG_SIZE, f"LWS_WORKER_INDEX ({rank}) must be less than LWS_GROUP_SIZE ({size})"
        )
    return address, size, rank


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if not NUMBER.fullmatch(text):
        raise RendezvousError(FailureReason.NO_GROUP, f"{name} is {text[:20]!r}, not a number")
    return int(text)


def rank_name(rank: int, address: str) -> str:
    """Return the name of a rank in the leader's group.

    >>> [rank_name(rank, "web-0.web.prod") for rank in range(2)]
    ['web-0.web.prod', 'web-0-1.web.prod']
    """
    host, _, domain = address.partition(".")
    return f"{host}-{rank}.{domain}" if rank else address


def find_failure(name: str, port: int | None, seconds: float) -> FailureReason | None:
    """Try once to connect to a rank or to resolve its name. Return the reason, or None if the attempt succeeds."""
    try:
        if port is None:
            socket.getaddrinfo(name, None)
        else:
            socket.create_connection((name, port), seconds).close()
    except socket.gaierror as error:
        return _lookup_failure(error.errno)
    except UnicodeError:  # not a valid DNS name, because a label is empty or too long
        return FailureReason.NO_NAME
    except ConnectionRefusedError:
        return FailureReason.CLOSED
    except OSError:
        return FailureReason.SILENT
    return None


def _lookup_failure(code: int | None) -> FailureReason:
    if code == socket.EAI_NONAME:
        return FailureReason.NO_NAME
    return FailureReason.NO_ADDRESS if code in NO_DATA else FailureReason.NO_DNS


class Rendezvous:
    """The missing ranks, and the reason for the last failure of each rank."""

    def __init__(self, ranks: Mapping[int, str], port: int | None, seconds: float) -> None:
        self.ranks = dict(ranks)
        self.port = port
        self.seconds = seconds
        self.reasons: dict[int, FailureReason] = {}

    def run(self) -> None:
        """Retry until all ranks are reachable."""
        pause, longest = PAUSES
        while self.ranks:
            for rank, name in tuple(self.ranks.items()):
                self._try(rank, name)
            if self.ranks:
                time.sleep(pause)
                pause = min(1.5 * pause, longest)

    def _try(self, rank: int, name: str) -> None:
        reason = find_failure(name, self.port, min(ATTEMPT, self.seconds / 2))
        if reason is None:
            del self.ranks[rank]
            return
        if rank == next(iter(self.ranks)) and self.reasons.get(rank) is not reason:
            print_line(f"waiting for {self.title(rank, name)}: {reason.description}")
        self.reasons[rank] = reason

    def title(self, rank: int, name: str) -> str:
        """Return the description of a rank for messages, with its name and port."""
        place = f"{name}:{self.port}" if self.port else name
        return f"rank {rank} ({place})" if rank else f"the leader ({place})"

    def deadline_error(self, ranks: Mapping[int, str]) -> RendezvousError:
        """Return the error for a missed deadline. It depends on whether the first lookup has finished."""
        (rank, name), *others = sorted(ranks.items())
        reason = self.reasons.get(rank, FailureReason.NO_DNS)
        more = f" and {len(others)} more" if others else ""
        text = f"{self.title(rank, name)}{more} did not respond within {self.seconds:g} s: {reason.description}"
        return RendezvousError(reason, text)


def wait_for_ranks(arguments: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Wait for the other ranks. Raise RendezvousError if the deadline is missed."""
    address, size, own = read_group(environment)
    if arguments.size not in (None, size):
        raise RendezvousError(
            FailureReason.WRONG_SIZE,
            f"--size is {arguments.size}, but LWS_GROUP_SIZE is {size}",
        )
    ranks = range(size) if arguments.whom == "all" else (0,)
    names = {rank: rank_name(rank, address) for rank in ranks if rank != own}
    meeting = Rendezvous(names, arguments.port, arguments.timeout)
    start = time.monotonic()
    # A lookup cannot be interrupted. To meet the deadline, the caller does not wait for it.
    thread = threading.Thread(target=meeting.run, daemon=True)
    thread.start()
    thread.join(arguments.timeout)
    if left := dict(meeting.ranks):
        raise meeting.deadline_error(left)
    print_line(f"rank {own} reached {arguments.whom} after {time.monotonic() - start:.1f} s")


def print_line(text: str) -> None:
    """Print and flush a line."""
    print(f"rendezvous: {text}", file=sys.stderr, flush=True)  # noqa: T201 - this is what it says


def exit_with_error(error: RendezvousError) -> NoReturn:
    """Print the reason, write it to the termination message, and exit with its code."""
    text = f"{error} (exit code {error.reason.value}). {error.reason.advice}"
    print_line(text)
    with contextlib.suppress(OSError):  # not in a container, or not writable
        if TERMINATION_LOG.exists():
            TERMINATION_LOG.write_text(f"rendezvous: {text}\n")
    os._exit(error.reason.value)  # an unresponsive lookup must not delay the exit


def seconds(text: str) -> float:
    """Parse a timeout."""
    deadline = float(text)
    if not 0 < deadline <= LONGEST:
        raise ValueError
    return deadline


def port(text: str) -> int:
    """Parse a port."""
    if not NUMBER.fullmatch(text) or not 0 < int(text) < 1 << 16:
        raise ValueError
    return int(text)


def count(text: str) -> int:
    """Parse a size."""
    if not NUMBER.fullmatch(text) or not int(text):
        raise ValueError
    return int(text)


def read_arguments() -> argparse.Namespace:
    """Return the parsed arguments. If they are invalid, exit with code 2."""
    parser = argparse.ArgumentParser(prog="python -m leaderworkerset.rendezvous", description=__doc__)
    parser.add_argument("whom", choices=("leader", "all", "shell"), help="`shell` prints the shell variant")
    parser.add_argument(
        "--port", type=port, help="port on which the ranks must listen. If omitted, only their names are resolved"
    )
    parser.add_argument("--timeout", type=seconds, default=600.0, metavar="SECONDS", help="time limit, 600 by default")
    parser.add_argument("--size", type=count, help="number of ranks that the application expects in its group")
    return parser.parse_args()


def main() -> None:
    """Run the rendezvous that is specified by the arguments and the environment."""
    # The first process of a container ignores signals without a handler.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    arguments = read_arguments()
    if arguments.whom == "shell":
        sys.stdout.write(Path(__file__).with_name("rendezvous.sh").read_text())
        return
    try:
        wait_for_ranks(arguments, os.environ)
    except RendezvousError as error:
        exit_with_error(error)


if __name__ == "__main__":
    main()
