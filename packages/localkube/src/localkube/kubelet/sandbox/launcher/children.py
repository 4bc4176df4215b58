"""Manages the children of the launcher: forks them into pods, receives their reports, and reaps them."""

import gc
import os
import resource
import selectors
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, NoReturn

from localkube.kubelet.processes.kernelerrors import RequestError, explain

from . import containerinit
from .kernel import syscalls
from .kernel.syscalls import is_readable
from .launcherconnection import LauncherConnection
from .launchspecs import Container, Pod
from .process import ChildProcess
from .program import become

Streams = tuple[int, int, int]


class ForkRequest(NamedTuple):
    """A child to be forked, with its request."""

    key: str
    reply: int
    pod: Pod
    container: Container


class Children:
    """All processes from their fork to their exit, by key, PID, pod and descriptor."""

    def __init__(self, selector: selectors.BaseSelector, host_proc: int | None, files: int, *, confined: bool) -> None:
        self._selector = selector
        self._host_proc = host_proc
        self._files = files
        self._confined = confined
        self._by_key: dict[str, ChildProcess] = {}
        self._by_pid: dict[int, ChildProcess] = {}
        self._by_pod: dict[str, dict[str, ChildProcess]] = {}
        self._reporting: dict[int, ChildProcess] = {}

    def get(self, key: str) -> ChildProcess | None:
        """Return a process by its key."""
        return self._by_key.get(key)

    def pod_processes(self, pod: Pod) -> list[ChildProcess]:
        """Return the processes of a pod."""
        return list(self._by_pod.get(pod.id, {}).values())

    def fork(self, birth: ForkRequest, fork: Callable[[], int], live: Callable[[LauncherConnection], None]) -> None:
        """Fork a child that runs `live`, which does not return. Its exceptions become errors of the request."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                pid = fork()
            except OSError:
                ours.close()
                raise
            if pid == 0:
                _live(LauncherConnection(theirs), live)
        self._add(ChildProcess(birth.key, birth.pod, birth.container, (pid, LauncherConnection(ours)), birth.reply))

    def run_program(self, link: LauncherConnection, program: Container, streams: Streams) -> NoReturn:
        """In the child, start a process and wait until it exits."""
        report = self.close_inherited(link, "kube-init", streams)
        if is_readable(link.fileno()):
            os._exit(containerinit.FAILED)  # the launcher exited before the child could request a signal for this
        pid = containerinit.start(
            lambda: become(program, streams, self._files, confined=self._confined), report, own=set(streams)
        )
        containerinit.watch(pid, link)

    def close_inherited(self, link: LauncherConnection, name: str, streams: Streams) -> containerinit.Report:
        """In the child, close all descriptors of the launcher, so that logs are closed when containers terminate."""
        host_proc = {self._host_proc} if self._host_proc is not None else set()
        _keep_only({link.fileno(), *streams, *host_proc})
        with suppress(AttributeError):  # not Linux
            syscalls.set_process_name(name)
        return containerinit.Report(link, self._host_proc)

    def take_reports(self, ready: Iterable[int]) -> list[ChildProcess]:
        """Return the reports of the children whose descriptor is readable."""
        reporting = [process for fd in ready if (process := self._reporting.get(fd)) is not None]
        for process in reporting:
            if not process.take_reports():
                self._unregister(process)
        return reporting

    def reap(self) -> Iterator[tuple[ChildProcess, int]]:
        """Remove each exited process from the tables, and yield it with its wait status."""
        while (ended := _wait_for_any()) is not None:
            pid, status = ended
            process = self._by_pid.get(pid)
            if process is not None:
                process.take_reports()
                self._remove(process)
                yield process, status

    def kill_all(self) -> None:
        """Kill all descendants of the launcher."""
        for process in self._by_key.values():
            containerinit.send_signal(process.pid, signal.SIGTERM)
        containerinit.end_descendants()

    def _add(self, process: ChildProcess) -> None:
        self._by_key[process.key] = self._by_pid[process.pid] = process
        self._by_pod.setdefault(process.pod.id, {})[process.key] = process
        self._reporting[process.link.fileno()] = process
        self._selector.register(process.link, selectors.EVENT_READ)

    def _remove(self, process: ChildProcess) -> None:
        del self._by_key[process.key], self._by_pid[process.pid]
        siblings = self._by_pod[process.pod.id]
        del siblings[process.key]
        if not siblings:
            del self._by_pod[process.pod.id]
        self._unregister(process)

    def _unregister(self, process: ChildProcess) -> None:
        if self._reporting.pop(process.link.fileno(), None) is not None:
            self._selector.unregister(process.link)


def wake_on_children() -> int:
    """Return a descriptor that becomes readable when a child exits."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _keep_only(fds: set[int]) -> None:
    """Close all descriptors except these descriptors and the first three."""
    start = 3
    for fd in sorted(fd for fd in fds if fd >= start):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, max(start, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))


def _live(link: LauncherConnection, live: Callable[[LauncherConnection], None]) -> NoReturn:
    gc.disable()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        live(link)
    except (OSError, RequestError, ValueError) as error:
        link.send({"event": "refused", "text": explain(error)})
    finally:
        os._exit(containerinit.FAILED)


def _wait_for_any() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None
