"""Changes the size of an in-memory file system in a running container, so that it becomes full.

Only file systems in memory (tmpfs) are resized, as /tmp and /dev/shm: they belong to the container. Other paths are on
a disk of this machine, which must not be filled for a rehearsal.
"""

import os
from typing import NoReturn

from localkube.kubelet.processes.kernelerrors import RequestError, explain

from . import syscalls

_UNCHANGED = syscalls.MS_REMOUNT | syscalls.MS_NOSUID | syscalls.MS_NODEV
_OF_CONTAINERS = ("/tmp", "/dev/shm")  # noqa: S108 - names of mount points, nothing is put there


def resize(first: int, path: str, size: int) -> int:
    """Resize the file system at `path` in the container of process `first`, and return the previous size in bytes.

    0 means the size of its content. A child of this process enters the container, as this process must not.
    """
    _require_own(first, path)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _respond(first, path, size, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        response = pipe.read().decode()
    os.waitpid(pid, 0)
    if not response.isdecimal():
        raise RequestError(response or f"{path}: the container has terminated")
    return int(response)


def _respond(first: int, path: str, size: int, writing: int) -> NoReturn:
    try:
        syscalls.setns(os.pidfd_open(first), syscalls.CLONE_NEWNS)
        os.write(writing, str(_resize(path, size)).encode())
    except (OSError, RequestError) as error:
        os.write(writing, explain(error).encode())
    finally:
        os._exit(0)


def _resize(path: str, size: int) -> int:
    there = os.statvfs(path)
    if there.f_blocks == 0:
        raise RequestError(f"{path}: cannot fill a file system without a size limit")
    used = (there.f_blocks - there.f_bfree) * there.f_frsize
    syscalls.mount(None, None, path, _UNCHANGED, f"size={size or max(used, there.f_frsize)}")
    return there.f_blocks * there.f_frsize


def _require_own(first: int, path: str) -> None:
    """Reject a path that is not a mount point of an in-memory file system for process `first`."""
    kinds = {}
    with open(f"/proc/{first}/mounts") as mounts:
        for line in mounts:
            _, point, kind, *_ = line.split(" ")
            kinds[point.replace("\\040", " ")] = kind
    if kinds.get(os.path.normpath(path)) != "tmpfs":
        own = ", ".join(sorted(point for point, kind in kinds.items() if kind == "tmpfs" and point in _OF_CONTAINERS))
        raise RequestError(f"{path}: must be an in-memory file system of the container: {own or 'none'}")
