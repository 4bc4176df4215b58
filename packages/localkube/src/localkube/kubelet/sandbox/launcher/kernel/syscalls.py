"""Implements system calls that Python's standard library does not provide.

Each raises `OSError` with the failed action.

Constants are those of the kernel's headers and equal on all architectures.
"""

import ctypes
import errno
import os
import select
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_UNBINDABLE = 1 << 17
MS_SLAVE = 1 << 19
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture, since Linux 5.12
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1

_WHY_NO_NAMESPACES = {
    errno.ENOSPC: "check the limits in /proc/sys/user",
    errno.EPERM: (
        "check sysctl kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns, or the "
        "seccomp profile of the container"
    ),
}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, action: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number).lower()}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces of the types in `flags`."""
    try:
        _check(_libc.unshare(flags), "create namespaces")
    except OSError as error:
        hint = _WHY_NO_NAMESPACES.get(error.errno or 0)
        raise OSError(error.errno, f"{error.strerror}: {hint}") if hint else error from None


def setns(fd: int, flags: int) -> None:
    """Enter a namespace, or with a pidfd the namespaces of a process of the types in `flags`."""
    _check(_libc.setns(fd, flags), "setns")


def mount(kind: str | None, source: str | None, target: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system or, with `MS_BIND`, a directory or file at another path."""
    result = _libc.mount(
        None if source is None else os.fsencode(source),
        os.fsencode(target),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, f"mount {source or kind} at {target}")


def unmount(target: str) -> None:
    """Detach a mount with all mounts below it."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"unmount {target}")


def make_read_only(target: str, *, recursive: bool) -> None:
    """Make one mount, or all mounts at and below `target`, read-only."""
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    result = _libc.syscall(
        _SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, attributes, ctypes.c_size_t(len(attributes))
    )
    _check(result, f"make {target} read-only")


def require_read_only_mounts() -> None:
    """Raise an error if the kernel is too old for `make_read_only`."""
    if _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, None, 0, None, ctypes.c_size_t(0)) < 0:
        number = ctypes.get_errno()
        if number == errno.ENOSYS:
            raise OSError(number, "mount_setattr: requires Linux 5.12 or later")


def change_root(target: str) -> None:
    """Make the mount at `target` the root of this mount namespace, and detach the previous root."""
    os.chdir(target)
    _check(_libc.pivot_root(b".", b"."), f"pivot_root {target}")
    unmount(".")
    os.chdir("/")


def set_hostname(name: str) -> None:
    """Set the host name of this UTS namespace."""
    data = name.encode()
    _check(_libc.sethostname(data, ctypes.c_size_t(len(data))), f"set host name {name}")


def die_with_parent(signal: int) -> None:
    """Request that the kernel sends `signal` when the parent (the thread that started this process) exits."""
    _check(_prctl(_PR_SET_PDEATHSIG, signal), "prctl PDEATHSIG")


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose parent exits (a subreaper)."""
    _check(_prctl(_PR_SET_CHILD_SUBREAPER, 1), "prctl CHILD_SUBREAPER")


def set_process_name(name: str) -> None:
    """Set the short name for `ps` and `top`."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl NAME")


def drop_capability(number: int) -> None:
    """Remove a capability from the bounding set of this process and its descendants."""
    _check(_prctl(_PR_CAPBSET_DROP, number), f"drop capability {number}")


def _prctl(option: int, value: int) -> int:
    zero = ctypes.c_ulong(0)
    return int(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero))


def is_readable(fd: int) -> bool:
    """Return whether reading would not block, because data is available or the other end is closed."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def parse_pid(fdinfo: str) -> int:
    r"""Return the PID in the content of /proc/self/fdinfo/N of a pidfd, or -1 if the process has been reaped.

    >>> parse_pid("pos:\t0\nflags:\t02000002\nPid:\t42\nNSpid:\t42\t1\n")
    42
    """
    for line in fdinfo.splitlines():
        name, _, value = line.partition(":")
        if name == "Pid":
            return int(value)
    raise ValueError(f"not a pidfd: {fdinfo!r}")


def read_pid(pidfd: int, proc: int | None = None) -> int:
    """Return the PID of the process in /proc, or in the /proc whose descriptor is `proc`."""
    handle = os.open(
        f"self/fdinfo/{pidfd}" if proc is not None else f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY, dir_fd=proc
    )
    with open(handle) as file:
        return parse_pid(file.read())
