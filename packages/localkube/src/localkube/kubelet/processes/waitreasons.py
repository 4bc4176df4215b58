"""Reads what container processes wait for from /proc: a lock, a sleep, a socket with its peer, the disk, or the CPU.

Of a tree of processes, the result describes a process that does not wait for another one of the tree. Its main thread
counts, because it drives the program. Facts that the kernel does not show (another kernel, an exited process) are
unknown.
"""

import platform
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final, NamedTuple, assert_never

from msgspec import Struct

from localkube.kubelet.processes import processtree

LOOK: Final = 0.1
"""The interval in seconds between two measurements of the CPU time of a process."""

BUSY_TICKS: Final = 2
"""The minimum CPU time between the measurements, in hundredths of a second, of a busy process."""

MOST_PROCESSES: Final = 256
"""The maximum number of processes of a container that are examined."""

ESTABLISHED: Final = "01"
CLOSE_WAIT: Final = "08"
LISTENS: Final = "0A"


class SystemCall(Enum):
    """The meaning of a waiting system call. `ONE` waits for one descriptor, and `MANY` for several."""

    LOCK = auto()
    SLEEP = auto()
    CHILD = auto()
    MANY = auto()
    ONE = auto()
    FILE_LOCK = auto()


SYSTEM_CALLS: Final[Mapping[str, Mapping[SystemCall, Iterable[int]]]] = {
    "x86_64": {
        SystemCall.LOCK: (202, 449),
        SystemCall.SLEEP: (34, 35, 230),
        SystemCall.CHILD: (61, 247),
        SystemCall.MANY: (7, 23, 219, 232, 270, 271, 281, 441),
        SystemCall.ONE: (0, 1, 16, 17, 18, 19, 20, 42, 43, 44, 45, 46, 47, 74, 75, 288, 299),
        SystemCall.FILE_LOCK: (72, 73),
    },
    "aarch64": {
        SystemCall.LOCK: (98, 449),
        SystemCall.SLEEP: (101, 115),
        SystemCall.CHILD: (95, 260),
        SystemCall.MANY: (22, 72, 73, 128, 441),
        SystemCall.ONE: (63, 64, 65, 66, 67, 68, 82, 83, 202, 203, 206, 207, 211, 212, 242, 243),
        SystemCall.FILE_LOCK: (25, 32),
    },
}
"""The numbers of waiting system calls by machine type."""


class WaitReason(Struct, frozen=True):
    """A description of the wait. `peer` is the address and port at the other end of a socket, or an empty string."""

    description: str
    peer: str = ""


BUSY: Final = WaitReason("nothing, because it uses the CPU")

STATES: Final[Mapping[str, WaitReason | None]] = {
    "Z": None,
    "X": None,
    "T": WaitReason("SIGCONT, because it is stopped"),
    "t": WaitReason("its debugger"),
    "D": WaitReason("the disk"),
    "R": BUSY,
}
"""The waits that are visible in the process state. Other processes sleep in a system call."""


class Socket(NamedTuple):
    """A TCP socket: the remote end, the local port, and its state (two hexadecimal digits)."""

    peer: str
    port: int
    state: str


def wait_reason(pids: Iterable[int]) -> WaitReason | None:
    """Return what the processes with these main processes wait for, or None if it is unknown.

    The call takes `LOOK` seconds.
    """
    first = [*pids]
    before = processtree.read()
    time.sleep(LOOK)
    now = processtree.read()
    tree = [pid for pid in (*first, *processtree.descendants(first, before)) if pid in before and pid in now]
    for pid in reversed(tree[:MOST_PROCESSES]):  # the others wait for the youngest process
        is_busy = now[pid].own_ticks - before[pid].own_ticks >= BUSY_TICKS
        with suppress(OSError, ValueError, IndexError):
            if (wait := _describe(pid, now[pid].state, is_busy=is_busy)) is not None:
                return wait
    return None


def _describe(pid: int, state: str, *, is_busy: bool) -> WaitReason | None:
    """Return what one process waits for, or None if it has exited or waits for another process."""
    if state in STATES:
        return STATES[state]
    if is_busy:
        return BUSY
    words = Path(f"/proc/{pid}/syscall").read_text().split()
    number, first = int(words[0]), int(words[1], 16) if len(words) > 1 else 0
    table = SYSTEM_CALLS.get(platform.machine(), {})
    match next((kind for kind, numbers in table.items() if number in numbers), None):
        case SystemCall.CHILD:
            return None
        case SystemCall.LOCK:
            wait = WaitReason("a lock (futex)")
        case SystemCall.SLEEP:
            wait = WaitReason("a timer (sleep)")
        case SystemCall.FILE_LOCK:
            wait = WaitReason(f"a file lock ({_target(pid, first)})")
        case SystemCall.ONE:
            wait = _descriptor_wait(pid, first)
        case SystemCall.MANY:
            wait = _poll_wait(pid)
        case None:
            wait = WaitReason(f"the kernel ({Path(f'/proc/{pid}/wchan').read_text().strip() or 'unknown'})")
        case other:
            assert_never(other)
    return wait


def _target(pid: int, descriptor: int) -> str:
    return str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())


def _descriptor_wait(pid: int, descriptor: int) -> WaitReason:
    target = _target(pid, descriptor)
    kind, _, inode = target.rstrip("]").partition(":[")
    if kind == "pipe":
        return WaitReason("a pipe")
    if kind == "socket":
        socket = _sockets(pid).get(inode)
        return WaitReason("a local socket") if socket is None else _socket_wait(socket)
    return WaitReason(f"the file {target}")


def _poll_wait(pid: int) -> WaitReason:
    """Return the wait of a polling process. A connection that the peer closed takes precedence."""
    sockets = _sockets(pid)
    own: list[Socket] = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            inode = str(descriptor.readlink()).removeprefix("socket:[").rstrip("]")
            own += [sockets[inode]] if inode in sockets else []
    for state in (CLOSE_WAIT, ESTABLISHED, LISTENS):
        if socket := next((candidate for candidate in own if candidate.state == state), None):
            return _socket_wait(socket)
    return WaitReason("one of several file descriptors (poll)")


def _socket_wait(socket: Socket) -> WaitReason:
    match socket.state:
        case "08":
            return WaitReason("a socket that the peer has closed,", socket.peer)
        case "0A":
            return WaitReason(f"a connection to its port {socket.port}")
        case _:
            return WaitReason("data or buffer space on a socket,", socket.peer)


def _sockets(pid: int) -> dict[str, Socket]:
    """Return the TCP sockets in the network of a process, by their inodes."""
    sockets = {}
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                row = line.split()
                sockets[row[9]] = Socket(_address(row[2]), int(row[1].rpartition(":")[2], 16), row[3])
    return sockets


def _address(text: str) -> str:
    """Parse an address and port in /proc/net/tcp. Its 32-bit words are in the byte order of the machine.

    >>> _address("0100007F:0BB8") if sys.byteorder == "little" else "127.0.0.1:3000"
    '127.0.0.1:3000'
    """
    address, _, port = text.partition(":")
    raw = bytes.fromhex(address)
    words = (int.from_bytes(raw[at : at + 4]).to_bytes(4, sys.byteorder) for at in range(0, len(raw), 4))
    packed = b"".join(words)
    if len(packed) == 4:
        return f"{IPv4Address(packed)}:{int(port, 16)}"
    six = IPv6Address(packed)
    return f"{six.ipv4_mapped or f'[{six}]'}:{int(port, 16)}"
