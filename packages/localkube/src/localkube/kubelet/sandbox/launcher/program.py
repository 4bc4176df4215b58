"""Turns the current process into the main process of a container: file descriptors, identity, directory and exec.

A refusal raises `RequestError` with the message of container runtimes, as users search for those.
"""

import errno
import fcntl
import os
import signal
import termios

from localkube.kubelet.processes.descriptors import restore_limit
from localkube.kubelet.processes.kernelerrors import RequestError, explain

from .kernel import syscalls
from .launchspecs import Container

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The capabilities that containers retain when they run as root, by number: chown, dac_override, fowner, fsetid, kill,
# setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap.
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31})
_NO_ID = 0xFFFFFFFF


def find_executable(name: str, path: str) -> str:
    """Return the file for `name`. If it does not contain a slash, search the directories of `path`."""
    if "/" in name:
        return name
    forbidden = False
    for directory in path.split(":"):
        candidate = os.path.join(directory or ".", name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            forbidden = True
    if forbidden:
        raise RequestError(f'exec: "{name}": permission denied')
    raise RequestError(f'exec: "{name}": executable file not found in $PATH')


def become(program: Container, streams: tuple[int, int, int], files: int, *, confined: bool) -> None:
    """Execute the program with this limit on open files. Raise `RequestError` if this fails.

    `confined` programs of root get only a container's capabilities.
    """
    os.setsid()
    _take_streams(streams)
    restore_limit(files)
    if confined and os.geteuid() == 0:
        _drop_capabilities()
    _take_identity(program.run_as_user, program.run_as_group)
    _enter_directory(program.cwd)
    reset_signals()
    name = program.argv[0]
    file = find_executable(name, program.env.get("PATH", DEFAULT_PATH))
    try:
        os.execve(file, program.argv, dict(program.env))  # noqa: S606 - a shell would change what is run
    except OSError as error:
        raise RequestError(f'exec: "{name}": {_explain(error, file)}') from error
    except ValueError as error:
        raise RequestError(f'exec: "{name}": {error}') from error


def _explain(error: OSError, file: str) -> str:
    if error.errno == errno.ENOENT and os.path.exists(file):
        return "no such file or directory (its interpreter or its loader is missing)"
    return os.strerror(error.errno or 0).lower()


def _take_streams(streams: tuple[int, int, int]) -> None:
    lifted = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in streams]
    for target, fd in enumerate(lifted):
        os.dup2(fd, target, inheritable=True)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _take_identity(user: int | None, group: int | None) -> None:
    try:
        if group not in (None, os.getegid()) or user not in (None, os.geteuid()):
            _change_identity(os.geteuid() if user is None else user, os.getegid() if group is None else group)
    except OSError as error:
        raise RequestError(
            f"run as user {user}, group {group}: {os.strerror(error.errno or 0).lower()}. Remove runAsUser and "
            f"runAsGroup, or run the cluster as root instead of user {os.geteuid()}"
        ) from error


def _change_identity(user: int, group: int) -> None:
    if not (0 <= user < _NO_ID and 0 <= group < _NO_ID):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    if os.geteuid() == 0:
        os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def _drop_capabilities() -> None:
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for number in range(last + 1):
        if number not in _KEPT_CAPABILITIES:
            syscalls.drop_capability(number)


def reset_signals() -> None:
    """Reset all signals that this process ignores or handles, because exec preserves ignored signals."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _enter_directory(cwd: str | None) -> None:
    try:
        os.chdir(cwd or "/")
    except OSError as error:
        raise RequestError(f"chdir {explain(error)}") from error
