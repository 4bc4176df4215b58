"""Implements a process runner without processes, which runs scripts in the time of the event loop.

It replaces the sandbox in simulations and fast tests, where thousands of pods run for simulated hours in one thread.
A `Program` describes a process: when it listens on which ports, when it ends by itself, how it reacts to SIGTERM, what
it prints. Connections are real streams (socket pairs) that end at a responder, so that probes, hooks and
port-forwarding run their production code.
"""

import asyncio
import errno
import itertools
import os
import signal as signals
import socket
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from localkube.kubelet.processes.runner import (
    Capabilities,
    ContainerSpec,
    Exit,
    Network,
    PacketLoss,
    ResourceUsage,
    SandboxSpec,
    StartError,
)

ANSWER: Final = b"HTTP/1.1 %d Modelled\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

NOT_MODELLED: Final = "simulated processes do not have network packets or file systems"

SIGNALS: Final = 1000
"""The maximum number of recorded signals. The latest signals are retained."""


class Program(Struct, frozen=True, kw_only=True):
    """The behavior of a simulated process. All times are seconds after its start.

    `listens` is when each port opens, `http_status` the HTTP status there. `exits` is when it ends by itself, and how; it
    may be None. `term` is how long it takes to end after SIGTERM; None ignores the signal. `commands` has the results
    of commands in its container: (seconds, code) by argument vector; others succeed at once. `start_error` is the reason
    why it cannot be started.
    """

    start_delay: float = 0.0
    listens: Mapping[int, float] = field(default_factory=dict)
    http_status: int = 200
    exits: tuple[float, Exit] | None = None
    term: float | None = 0.0
    output: str = ""
    commands: Mapping[tuple[str, ...], tuple[float, int]] = field(default_factory=dict)
    start_error: str = ""


Script: TypeAlias = Callable[[ContainerSpec], Program]
"""Selects the behavior of a container. Called at every start, so that it can count attempts."""


Busyness: TypeAlias = Callable[[ContainerSpec], float]
"""Returns the number of CPUs that a container has used since the last call."""

MODELLED_MEMORY: Final = 16 * 2**20


def no_cpu_usage(_spec: ContainerSpec) -> float:
    """Do not use CPU time."""
    return 0.0


def run_forever(spec: ContainerSpec) -> Program:
    """Simulate a process that runs until its termination is requested. A stub also listens."""
    return Program(listens=dict.fromkeys(spec.stub_ports, 0.0))


class Process(Struct):
    """A running simulated process."""

    spec: ContainerSpec
    program: Program
    pid: int
    started: float
    on_exit: Callable[[Exit], None]
    timers: list[asyncio.TimerHandle] = field(default_factory=list)
    used: float = 0.0
    counted: float = 0.0


class SimulatedRunner:
    """Implements `ProcessRunner` in the time of the running loop.

    `processes` contains running processes by container ID.

    The processes of sandboxes in `hung` ignore all signals; they end only with their sandbox. `busy` returns their
    usage.
    """

    def __init__(self, script: Script = run_forever, *, network: Network = "isolated") -> None:
        self.processes: dict[str, Process] = {}
        self.sandboxes: dict[str, SandboxSpec] = {}
        self.addresses: dict[str, str] = {}
        self.cores: dict[int, float] = {}
        self.signals: deque[tuple[str, int]] = deque(maxlen=SIGNALS)
        self.hung: set[str] = set()
        self.busy: Busyness = no_cpu_usage
        self._script = script
        self._network: Network = network
        self._pids = itertools.count(2**22 + 1)  # larger than any Linux PID
        self._hosts = itertools.count(2)
        self._commands: dict[int, tuple[asyncio.TimerHandle, Callable[[Exit], None]]] = {}

    async def start(self) -> Capabilities:
        """Grant all capabilities."""
        return Capabilities(has_namespaces=True, network=self._network)

    async def create_sandbox(self, spec: SandboxSpec, on_lost: Callable[[], None]) -> str:  # noqa: ARG002 - a model loses none
        """Record a pod, and return its address."""
        if spec.id in self.sandboxes:
            raise StartError(f"sandbox {spec.id} already exists")
        number = next(self._hosts)
        prefix = "10.88" if self._network == "isolated" else "127.88"
        self.sandboxes[spec.id] = spec
        self.addresses[spec.id] = f"{prefix}.{number // 250}.{number % 250 + 1}"
        return self.addresses[spec.id]

    async def start_container(self, spec: ContainerSpec, on_exit: Callable[[Exit], None]) -> int:
        """Start a simulated process."""
        program = self._script(spec)
        if program.start_delay:
            await asyncio.sleep(program.start_delay)
        if spec.sandbox_id not in self.sandboxes:
            raise StartError(f"sandbox {spec.sandbox_id} does not exist")
        if program.start_error:
            raise StartError(program.start_error)
        loop = asyncio.get_running_loop()
        process = Process(spec, program, next(self._pids), loop.time(), on_exit, counted=loop.time())
        self.processes[spec.id] = process
        if program.output:
            os.write(spec.stdout, program.output.encode())
        if program.exits:
            delay, ending = program.exits
            process.timers.append(loop.call_later(delay, self.stop_process, spec.id, ending))
        return process.pid

    async def exec(
        self, container_id: str, argv: tuple[str, ...], fds: tuple[int, int, int], on_exit: Callable[[Exit], None]
    ) -> int:
        """Run a command that prints its arguments and exits as specified."""
        if container_id not in self.processes:
            raise StartError(f"container {container_id} is not running")
        delay, code = self.processes[container_id].program.commands.get(argv, (0.0, 0))
        pid = next(self._pids)
        os.write(fds[1], f"{' '.join(argv)}\n".encode())
        timer = asyncio.get_running_loop().call_later(delay, self._end_command, pid, Exit(code))
        self._commands[pid] = (timer, on_exit)
        return pid

    async def kill_exec(self, pid: int) -> None:
        """Stop a command."""
        self._end_command(pid, _killed_exit(signals.SIGKILL))

    async def signal(self, container_id: str, signal: int, *, everything: bool = False) -> None:  # noqa: ARG002 - one process each
        """Stop a process immediately, or after the specified time."""
        process = self.processes.get(container_id)
        if process is None or process.spec.sandbox_id in self.hung:
            return
        self.signals.append((container_id, signal))
        if signal == signals.SIGKILL:
            self.stop_process(container_id, _killed_exit(signal))
        elif process.program.term is not None:
            loop = asyncio.get_running_loop()
            process.timers.append(
                loop.call_later(process.program.term, self.stop_process, container_id, _killed_exit(signal))
            )

    async def open_socket(self, sandbox_id: str | None) -> socket.socket:
        """Return a socket that connects to simulated processes."""
        if sandbox_id is not None and sandbox_id not in self.sandboxes:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"sandbox {sandbox_id} does not exist")
        return _ModelSocket(self, sandbox_id)

    async def drop_packets(self, losses: Sequence[PacketLoss]) -> None:
        """Raise an error, because simulated sockets do not have packets."""
        if losses:
            raise StartError(NOT_MODELLED)

    async def delay_packets(self, sandbox_id: str, seconds: float) -> None:  # noqa: ARG002 - the same for all
        """Raise an error, because packets are not simulated."""
        raise StartError(NOT_MODELLED)

    async def resize_memory(self, container_id: str, path: str, size: int) -> int:  # noqa: ARG002 - the same for all
        """Raise an error, because file systems are not simulated."""
        raise StartError(NOT_MODELLED)

    async def read_usage(self, pids: Collection[int]) -> Mapping[int, ResourceUsage]:
        """Return the usage of processes, computed with `busy` for the time since the last call."""
        now = asyncio.get_running_loop().time()
        usages = {}
        for process in self.processes.values():
            if process.pid in pids:
                process.used += self.busy(process.spec) * (now - process.counted)
                process.counted = now
                usages[process.pid] = ResourceUsage(process.used, MODELLED_MEMORY)
        return usages

    async def read_memory(self, pid: int) -> int:  # noqa: ARG002 - the same for all
        """Return the memory of a simulated process."""
        return MODELLED_MEMORY

    async def limit_cpu(self, pid: int, cores: float) -> None:
        """Record the limit, because CPU time is not simulated."""
        self.cores[pid] = cores

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Stop all remaining processes of a pod."""
        self.sandboxes.pop(sandbox_id, None)
        self.addresses.pop(sandbox_id, None)
        for container_id in [key for key, process in self.processes.items() if process.spec.sandbox_id == sandbox_id]:
            self.stop_process(container_id, _killed_exit(signals.SIGKILL))

    async def stop(self) -> None:
        """Remove all sandboxes."""
        for sandbox_id in list(self.sandboxes):
            await self.remove_sandbox(sandbox_id)

    def stop_process(self, container_id: str, ending: Exit) -> None:
        """Stop a process immediately, as if it had exited or been killed from outside."""
        process = self.processes.pop(container_id, None)
        if process is None:
            return
        for timer in process.timers:
            timer.cancel()
        asyncio.get_running_loop().call_soon(process.on_exit, ending)

    def listener(self, sandbox_id: str | None, host: str, port: int) -> Process | None:
        """Return the process that listens at an address."""
        now = asyncio.get_running_loop().time()
        for process in self.processes.values():
            owner = process.spec.sandbox_id
            local = host == "127.0.0.1" and (owner == sandbox_id or self._network == "shared")
            opens = process.program.listens.get(port)
            if opens is not None and now >= process.started + opens and (local or self.addresses[owner] == host):
                return process
        return None

    def is_taken(self, port: int) -> bool:
        """Return whether a process listens on the port, as in a shared network."""
        now = asyncio.get_running_loop().time()
        opens = [(process.started, process.program.listens.get(port)) for process in self.processes.values()]
        return any(delay is not None and now >= started + delay for started, delay in opens)

    def _end_command(self, pid: int, ending: Exit) -> None:
        timer, on_exit = self._commands.pop(pid, (None, None))
        if timer is not None and on_exit is not None:
            timer.cancel()
            on_exit(ending)


def _killed_exit(signal: int) -> Exit:
    return Exit(128 + signal, int(signal))


class _ModelSocket(socket.socket):
    """One end of a socket pair. Connecting passes the other end to a responder, or fails."""

    def __init__(self, runner: SimulatedRunner, sandbox_id: str | None) -> None:
        near, self._far = socket.socketpair()
        super().__init__(near.family, near.type, near.proto, near.detach())
        self.setblocking(False)
        self._runner = runner
        self._sandbox_id = sandbox_id

    def connect(self, address: Any) -> None:
        """Connect to the process that listens at the address."""
        process = self._runner.listener(self._sandbox_id, address[0], address[1])
        if process is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        _respond(self._far.detach(), process.program.http_status)

    def bind(self, address: Any) -> None:
        """Succeed if no process listens on the port."""
        if self._runner.is_taken(address[1]):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))

    def setsockopt(self, *_: Any) -> None:
        """Do nothing, because there are no options."""

    def close(self) -> None:
        """Close both ends that are still open."""
        self._far.close()
        super().close()


def _respond(descriptor: int, status: int) -> None:
    far = socket.socket(fileno=descriptor)
    far.setblocking(False)
    loop = asyncio.get_running_loop()

    def respond() -> None:
        loop.remove_reader(far)
        if far.recv(65536):
            far.sendall(ANSWER % status)
        far.close()

    loop.add_reader(far, respond)
