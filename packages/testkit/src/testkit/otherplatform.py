"""Runs `lws` in this process as on macOS or Windows, without the Python modules missing on that platform.

python -m testkit.otherplatform darwin|win32 WORD...

Standard library and dependencies are imported before, as this machine has them. Wheels exist for both systems (see
`requirements/wheels.json`), so that only the product's own imports and calls are in question.
"""

import asyncio
import builtins
import io
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NoReturn

LINUX_CALLS: Final = ("setns", "unshare", "pidfd_open", "memfd_create", "eventfd", "sched_getaffinity", "sched_setaffinity", "O_PATH", "O_TMPFILE", "getrandom", "sendfile", "splice", "copy_file_range", "setresuid", "setresgid", "pipe2", "posix_fallocate", "posix_fadvise", "listxattr", "getxattr", "setxattr")  # fmt: skip
UNIX_CALLS: Final = ("fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "getgroups", "killpg", "getpgid", "getpgrp", "setpgid", "setsid", "getsid", "tcgetpgrp", "tcsetpgrp", "openpty", "ttyname", "mkfifo", "mknod", "chown", "fchown", "lchown", "chroot", "nice", "getpriority", "setpriority", "statvfs", "fstatvfs", "uname", "sysconf", "confstr", "getloadavg", "wait", "wait3", "wait4", "waitid", "WIFEXITED", "WEXITSTATUS", "WIFSIGNALED", "WTERMSIG", "waitstatus_to_exitcode", "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_SYNC", "posix_spawn")  # fmt: skip
LINUX_SIGNALS: Final = ("SIGRTMIN", "SIGRTMAX", "SIGPWR", "SIGPOLL", "SIGCLD", "SIGSTKFLT")
UNIX_SIGNALS: Final = ("SIGHUP", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGWINCH", "SIGURG", "SIGIO", "SIGSYS", "setitimer", "pthread_sigmask", "sigwait", "alarm")  # fmt: skip

LWS: Final = (sys.executable, "-m", "testkit.otherplatform")
"""The command-line arguments before the platform, and before the arguments of `lws`."""

ABSENT: Final[Mapping[str, Mapping[ModuleType, tuple[str, ...]]]] = {
    "darwin": {
        os: LINUX_CALLS,
        signal: LINUX_SIGNALS,
        select: ("epoll",),
        socket: ("AF_NETLINK", "AF_PACKET", "AF_VSOCK", "SO_BINDTODEVICE", "SO_PEERCRED", "TCP_USER_TIMEOUT"),
    },
    "win32": {
        os: LINUX_CALLS + UNIX_CALLS,
        signal: LINUX_SIGNALS + UNIX_SIGNALS,
        select: ("epoll", "poll"),
        socket: (
            "AF_NETLINK",
            "AF_PACKET",
            "AF_VSOCK",
            "SO_BINDTODEVICE",
            "SO_PEERCRED",
            "TCP_USER_TIMEOUT",
        ),
    },
}
"""The modules that a platform does not provide, according to the Python documentation."""

ABSENT_MODULES: Final = {
    "darwin": frozenset[str](),
    "win32": frozenset({"fcntl", "resource", "termios", "tty", "pty", "grp", "pwd", "syslog", "curses", "readline"}),
}


class Absent(MetaPathFinder):
    """Rejects imports of modules that a platform does not provide, and of the embedded cluster."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Raise the error of a missing module."""
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def load_dependencies() -> None:
    """Import the modules of the standard library and of dependencies that the product uses."""
    import importlib.resources

    for name in ("aiohttp.web", "click.shell_completion", "cryptography.x509", "msgspec", "yaml", "structlog", "rich.live", "prometheus_client"):  # fmt: skip
        importlib.import_module(name)


def simulate(platform: str) -> None:
    """Simulate a different platform in the rest of this process."""
    load_dependencies()
    sys.platform = platform
    for module, names in ABSENT[platform].items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in ABSENT_MODULES[platform]:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Absent(ABSENT_MODULES[platform] | {"localkube"}))
    real_open = io.open

    def open_without_proc(file: Any, *words: Any, **options: Any) -> Any:
        if str(file).startswith(("/proc/", "/sys/", "/dev/shm")):
            raise FileNotFoundError(2, "No such file or directory", str(file))
        return real_open(file, *words, **options)

    builtins.open = io.open = open_without_proc
    if platform == "win32":

        def raise_missing(*_words: object) -> NoReturn:
            raise NotImplementedError

        for name in ("add_reader", "add_signal_handler", "remove_signal_handler", "connect_read_pipe"):
            setattr(asyncio.SelectorEventLoop, name, raise_missing)


def main() -> None:
    """Simulate the platform, and run the command line."""
    platform, *words = sys.argv[1:]
    simulate(platform)
    sys.argv = ["lws", *words]
    from lwsctl.cli.__main__ import main as lws

    lws()


if __name__ == "__main__":
    main()
