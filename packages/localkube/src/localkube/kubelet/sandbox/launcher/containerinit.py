"""Implements the init process of a container, which starts the main process and reaps orphans.

It kills all processes before it exits.

A program that is PID 1 itself ignores SIGTERM unless it handles it, and does not reap orphans. So PID 1 is this loop.
It ends when the program ends, and with PID 1 the kernel ends the rest. If the container shares its pod's PID namespace,
or has none, the loop is a subreaper instead: it becomes the parent of orphans and kills them one by one.

It reports to the launcher, in this order: `started` with a pidfd of the program (or `refused`), and `exit`.
"""

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple, NoReturn

from localkube.kubelet.processes import processtree
from localkube.kubelet.processes.kernelerrors import RequestError, explain

from .kernel import syscalls
from .kernel.syscalls import read_pid
from .launcherconnection import LauncherConnection

FAILED = 127

_HELD = frozenset({signal.SIGCHLD, signal.SIGTERM})
"""The signals for which the loop waits: a child exited, or the launcher exited (`adopt_orphans`)."""


class Report(NamedTuple):
    """The connection for reports, and the /proc of the host with the PIDs to report (None if it is /proc)."""

    link: LauncherConnection
    host_proc: int | None


def start(become: Callable[[], None], report: Report, own: Iterable[int]) -> int:
    """Fork the main process, report the result, and return its PID. Only this process uses `own`."""
    _hold_signals()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run(become, writing)
    for fd in (*own, writing):
        os.close(fd)
    with open(reading, "rb") as pipe:
        problem = pipe.read().decode()
    if problem:
        os.waitpid(pid, 0)
        report.link.send({"event": "refused", "text": problem})
        os._exit(FAILED)
    report_started(report, pid)
    return pid


def report_started(report: Report, pid: int) -> None:
    """Report the main process, with a pidfd if the system supports it."""
    handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    if handle is None:
        report.link.send({"event": "started", "pid": pid})
        return
    report.link.send({"event": "started", "pid": read_pid(handle, report.host_proc)}, (handle,))
    os.close(handle)
    if report.host_proc is not None:
        os.close(report.host_proc)


def watch(pid: int, link: LauncherConnection) -> NoReturn:
    """Reap children until the main process exits, report its exit, kill its remaining processes, and exit."""
    status = _reap_until(pid)
    code = os.waitstatus_to_exitcode(status)
    if os.getpid() != 1:
        end_descendants(pid)
    link.send({"event": "exit", "code": code if code >= 0 else 128 - code, "signal": max(0, -code)})
    os._exit(0)


def end_descendants(group: int | None = None) -> None:
    """Kill and reap all descendants, and the process group if /proc does not show descendants."""
    while True:
        if group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for pid in processtree.descendants([os.getpid()], processtree.read()):
            send_signal(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def adopt_orphans() -> None:
    """Make this process the parent of orphaned processes, if it has no PID namespace and the system supports it."""
    with suppress(AttributeError):  # not Linux, so only process groups are available
        syscalls.adopt_orphans()
        syscalls.die_with_parent(signal.SIGTERM)


def send_signal(pid: int, number: int) -> None:
    """Send a signal. Ignore an exited process."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _run(become: Callable[[], None], report: int) -> None:
    try:
        become()
    except (RequestError, OSError, ValueError) as error:  # ValueError: the path contains NUL
        os.write(report, explain(error).encode())
    finally:
        os._exit(FAILED)


def _hold_signals() -> None:
    """Block signals until the process waits for them, because an earlier signal would not interrupt the wait."""
    if os.getpid() != 1:  # the kernel does not send it one
        signal.signal(signal.SIGCHLD, lambda *_: None)  # an ignored signal can be dropped even if blocked
        signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)


def _reap_until(pid: int) -> int:
    """Reap children until this child has exited, and return its wait status. On SIGTERM, kill all processes."""
    options = os.WNOHANG if os.getpid() != 1 else 0
    while True:
        ended, status = os.waitpid(-1, options)
        if ended == pid:
            return status
        if not ended and signal.sigwait(_HELD) == signal.SIGTERM:
            end_descendants(pid)
            os._exit(FAILED)
