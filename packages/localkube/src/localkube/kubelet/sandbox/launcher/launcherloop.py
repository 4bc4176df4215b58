"""Implements the launcher loop, which processes requests, forks children, and reports their exits.

It is single-threaded, and every step is quick: slow actions (mounts, exec) run in the child. A request is `{"id", "op",
...}`; its response `{"reply": id, ...}`, with `error` if it is refused. Ends are `{"exit": key, "code", "signal"}` and
follow the response to the start. When the cluster process has ended, all processes are killed.
"""

import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from localkube.kubelet.processes.descriptors import require_spare
from localkube.kubelet.processes.kernelerrors import RequestError, explain, is_exhausted

from . import containerinit, stub
from .children import Children, ForkRequest, Streams, wake_on_children
from .isolation import NamespaceHost
from .kernel.packetrules import PacketRule
from .launcherconnection import ConnectionClosedError, LauncherConnection, Message, ReceivedMessage, require_all
from .launchspecs import Pod, parse_container
from .plainhost import PlainHost
from .process import ChildProcess

Ground: TypeAlias = NamespaceHost | PlainHost

LONGEST_IDENTITY = 1 << 16

SPARE = 32
"""Descriptors that are reserved for signals, removals and new children."""


class Server:
    """Serves the requests of the cluster process."""

    def __init__(self, link: LauncherConnection, ground: Ground, *, confined: bool, files: int, identity: int) -> None:
        self._link = link
        self._ground = ground
        self._identity = identity
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._pods: dict[str, Pod] = {}
        self._leaving: dict[str, int] = {}
        self._woken = wake_on_children()
        self._selector = selectors.DefaultSelector()
        self._children = Children(self._selector, ground.host_proc, files, confined=confined)
        for source in (self._link.fileno(), self._woken):
            self._selector.register(source, selectors.EVENT_READ)

    def run(self) -> NoReturn:
        """Serve requests until the cluster process has exited."""
        try:
            while True:
                self._process_events()
        except ConnectionClosedError:
            if os.getpid() != 1:  # for PID 1, the kernel kills all processes
                self._children.kill_all()
        os._exit(0)

    def _process_events(self) -> None:
        ready = {key.fd for key, _ in self._selector.select()}
        if self._link.fileno() in ready:
            for received in self._link.receive():
                self._handle(received)
        for process in self._children.take_reports(ready):
            self._announce(process)
        if self._woken in ready:
            os.read(self._woken, 1 << 12)
            for process, status in self._children.reap():
                self._finish(process, status)

    def _handle(self, received: ReceivedMessage) -> None:
        request, fds, _ = received
        operations: dict[str, Callable[[Message, list[int]], None]] = {
            "create": self._create,
            "start": self._start,
            "exec": self._exec,
            "signal": self._signal,
            "socket": self._socket,
            "remove": self._remove,
            "attach": self._attach,
            "lose": self._lose,
            "delay": self._delay,
            "bound": self._bound,
        }
        try:
            require_all(received)
            operations[request["op"]](request, fds)
        except ConnectionClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - the loop edge: one pod's request must not end all other pods
            if not isinstance(error, OSError | RequestError | ValueError):
                traceback.print_exc()
            self._link.send({"reply": request["id"], "error": explain(error), "exhausted": is_exhausted(error)})
        finally:
            for fd in fds:
                os.close(fd)

    def _respond_once(self, request: Message, fds: tuple[int, ...] = ()) -> None:
        self._link.send({"reply": request["id"]}, fds)

    def _create(self, request: Message, _: list[int]) -> None:
        require_spare(SPARE)
        pod = Pod(**request["pod"])
        self._ground.create(pod)
        self._pods[pod.id] = pod
        self._respond_once(request)

    def _start(self, request: Message, fds: list[int]) -> None:
        pod = self._pods.get(request["pod"])
        if pod is None or pod.id in self._leaving:
            raise RequestError(f"pod {request['pod']} has no sandbox")
        require_spare(SPARE)
        container = parse_container(request)
        streams: Streams = (self._null, fds[0], fds[1])

        def live(link: LauncherConnection) -> None:
            self._ground.enter(pod, container)
            if container.argv:
                self._children.run_program(link, container, streams)
            identity = os.pread(self._identity, LONGEST_IDENTITY, 0)
            containerinit.report_started(self._children.close_inherited(link, "kube-stub", streams), os.getpid())
            link.close()
            stub.serve((self._ground.stub_address(pod), container.stub_ports), identity, output=fds[0], errors=fds[1])

        birth = ForkRequest(request["key"], request["id"], pod, container)
        self._children.fork(birth, lambda: self._ground.fork(pod), live)

    def _exec(self, request: Message, fds: list[int]) -> None:
        process = self._children.get(request["container"])
        if process is None or not process.is_started:
            raise RequestError("the container is not running")
        require_spare(SPARE)
        env = dict(process.container.env)
        if os.isatty(fds[0]):
            env.setdefault("TERM", "xterm")
        program = process.container._replace(argv=request["argv"], env=env)
        streams: Streams = (fds[0], fds[1], fds[2])

        def live(link: LauncherConnection) -> None:
            self._ground.join(process.pod, process.pid)
            self._children.run_program(link, program, streams)

        self._children.fork(ForkRequest(request["key"], request["id"], process.pod, process.container), os.fork, live)

    def _signal(self, request: Message, _: list[int]) -> None:
        process = self._children.get(request["container"])
        if process is not None:
            process.send_signal(request["signal"], everything=request["everything"])
        self._respond_once(request)

    def _socket(self, request: Message, _: list[int]) -> None:
        pod = None if request["pod"] is None else self._pods.get(request["pod"])
        if pod is None and request["pod"] is not None:
            raise RequestError(f"pod {request['pod']} has no sandbox")
        with self._ground.open_socket(pod) as opened:
            self._respond_once(request, (opened.fileno(),))

    def _remove(self, request: Message, _: list[int]) -> None:
        pod = self._pods.get(request["pod"])
        if pod is None:
            self._respond_once(request)
            return
        self._leaving[pod.id] = request["id"]
        for process in self._children.pod_processes(pod):
            process.send_signal(signal.SIGKILL, everything=False)
        self._finish_removal(pod)

    def _attach(self, request: Message, _: list[int]) -> None:
        self._ground.attach(request["interface"], request["gateway"], request["nameserver"])
        self._respond_once(request)

    def _lose(self, request: Message, _: list[int]) -> None:
        self._ground.lose([PacketRule(*rule) for rule in request["rules"]])
        self._respond_once(request)

    def _delay(self, request: Message, _: list[int]) -> None:
        pod = self._pods.get(request["pod"])
        if pod is None:
            raise RequestError(f"pod {request['pod']} has no sandbox")
        self._ground.delay(pod, request["seconds"])
        self._respond_once(request)

    def _bound(self, request: Message, _: list[int]) -> None:
        process = self._children.get(request["container"])
        if process is None or not process.is_started:
            raise RequestError("the container is not running")
        size = self._ground.bound(process.pid, request["path"], request["size"])
        self._link.send({"reply": request["id"], "size": size})

    def _announce(self, process: ChildProcess) -> None:
        announcement = process.take_response()
        if announcement is not None:
            self._link.send(announcement)

    def _finish(self, process: ChildProcess, status: int) -> None:
        ended = process.record_exit(status)
        self._announce(process)
        if process.refused is None:
            self._link.send({"exit": process.key, "code": ended[0], "signal": ended[1]})
        for other in self._children.pod_processes(process.pod):
            if process.key == process.container.id == other.container.id:  # commands in the container terminate with it
                other.send_signal(signal.SIGKILL, everything=False)
        self._finish_removal(process.pod)

    def _finish_removal(self, pod: Pod) -> None:
        if pod.id not in self._leaving or self._children.pod_processes(pod):
            return
        reply = self._leaving.pop(pod.id)
        del self._pods[pod.id]
        try:
            self._ground.remove(pod)
        except OSError as error:  # some resources remain, but the other pods must not be affected
            print(f"failed to remove pod {pod.id} completely: {explain(error)}", file=sys.stderr, flush=True)  # noqa: T201
        self._link.send({"reply": reply})
