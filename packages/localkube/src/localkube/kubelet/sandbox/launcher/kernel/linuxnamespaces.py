"""Moves the launcher into new user, mount, PID, network, UTS and IPC namespaces.

The original process stays outside, as the parent of PID 1 inside. The kernel kills the parent when the cluster process
ends, PID 1 when the parent ends, and everything in the PID namespace when PID 1 ends.

User ids are mapped to themselves: programs inside have the same user, home directory and permissions as outside, and
are not root. If root runs this, all user ids that it has outside are mapped.
"""

import os
import signal
from collections.abc import Callable
from typing import NamedTuple

from localkube.kubelet.processes.kernelerrors import explain

from . import syscalls
from .syscalls import is_readable

_NAMESPACES = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWIPC


class IdMaps(NamedTuple):
    """The contents of uid_map and gid_map. A map of only one group requires that setgroups is denied."""

    users: str
    groups: str
    is_single: bool


def identity_map(lines: str) -> str:
    r"""Return the map with which a child namespace has the same IDs as `lines` (an ID map of this namespace).

    >>> identity_map("         0       1000          1\n         1     100000      65536\n")
    '0 0 1\n1 1 65536\n'
    """
    extents = [line.split() for line in lines.splitlines()]
    return "".join(f"{inside} {inside} {count}\n" for inside, _, count in extents)


def read_id_maps() -> list[IdMaps]:
    """Return the maps to try: all IDs for root, and then only the IDs of the caller."""
    user, group = os.geteuid(), os.getegid()
    single = IdMaps(f"{user} {user} 1\n", f"{group} {group} 1\n", is_single=True)
    if user != 0:
        return [single]
    with open("/proc/self/uid_map") as users, open("/proc/self/gid_map") as groups:
        return [IdMaps(identity_map(users.read()), identity_map(groups.read()), is_single=False), single]


def enter(parent: int, report_error: Callable[[str], None]) -> None:
    """Continue as PID 1 in new namespaces. If this fails, pass the error to `report_error` and exit."""
    try:
        _unshare_with_maps()
        syscalls.die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        alive, writer = os.pipe()
        pid = os.fork()
    except OSError as error:
        report_error(explain(error))
        os._exit(1)
    if pid == 0:
        os.close(writer)
        _follow(alive)
        return
    os.close(alive)
    _keep_only(writer)
    _, status = os.waitpid(pid, 0)
    os._exit(min(255, abs(os.waitstatus_to_exitcode(status))))


def _follow(alive: int) -> None:
    """Exit with the parent. `alive` is readable after the parent has exited, even before the signal is set."""
    syscalls.die_with_parent(signal.SIGKILL)
    if is_readable(alive):
        os._exit(1)


def _keep_only(fd: int) -> None:
    os.closerange(3, fd)
    os.closerange(fd + 1, 1 << 16)


def _unshare_with_maps() -> None:
    """Create the namespaces. A helper process outside writes the ID maps, because only it can write several lines."""
    ready, go = os.pipe()
    mapped = os.getpid()
    helper = os.fork()
    if helper == 0:
        os.close(go)
        os._exit(_write_maps(mapped) if os.read(ready, 1) else 1)
    os.close(ready)
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER | _NAMESPACES)
        os.write(go, b"1")
    finally:
        os.close(go)
        _, status = os.waitpid(helper, 0)
    if status:
        error = os.waitstatus_to_exitcode(status)
        raise OSError(error, f"write the ID maps of the user namespace: {os.strerror(error).lower()}")


def _write_maps(pid: int) -> int:
    error = 0
    for maps in read_id_maps():
        try:
            if maps.is_single:
                _write(pid, "setgroups", "deny")
            _write(pid, "gid_map", maps.groups)
            _write(pid, "uid_map", maps.users)
        except OSError as failure:
            error = failure.errno or 1
        else:
            return 0
    return error


def _write(pid: int, name: str, text: str) -> None:
    with open(f"/proc/{pid}/{name}", "w") as file:
        file.write(text)
