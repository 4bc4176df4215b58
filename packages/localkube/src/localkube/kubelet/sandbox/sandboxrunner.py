"""Implements `ProcessRunner` on one machine. Sends requests to the launcher, assigns addresses, and reports exits.

When a launcher ends, all its sandboxes end. The next sandbox starts a new launcher on the same kind of ground: at once
the first time, then with increasing back-off while launchers keep ending.

The runner uses the best ground that the machine grants (namespaces with a network per pod, namespaces on the host's
network, plain processes). `Capabilities.lost` has what the machine refused, and the effects.
"""

import asyncio
import itertools
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from kuberuntime.clock import SystemClock
from localkube.kubelet.processes import processstats
from localkube.kubelet.processes.descriptors import raise_limit, restore_limit
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
from localkube.kubelet.sandbox import cpugroups, plainnames
from localkube.kubelet.sandbox.egress import Egress
from localkube.kubelet.sandbox.ipam import (
    GATEWAY,
    LOOPBACK,
    POD_NETWORK,
    AddressesExhaustedError,
    AddressPool,
    LoopbackBlock,
)
from localkube.kubelet.sandbox.launcher.launcherconnection import Message
from localkube.kubelet.sandbox.launcherclient import LauncherEndedError
from localkube.kubelet.sandbox.launcherprocess import (
    Isolation,
    Launcher,
    LauncherExits,
    LauncherRefusedError,
    LaunchOptions,
    launch,
    log_path,
)
from localkube.kubelet.spec import backoff

KILLED = Exit(137, 9)

NO_NETWORKS = "pod networks: all pods share the host network, so only one pod can use a port"
NO_NAMESPACES = "volumes and reliable termination of daemons: pods are plain processes of this machine"
AT_ONCE = 4
"""The number of sandboxes and containers created or removed concurrently, because probes use the same launcher."""

LONGEST_TURN = 2.0
"""The time in seconds after which the next start begins even if the previous start is not complete."""

NO_LIMITS = "CPU limits: this user does not have permission to create a cgroup"


class HostAttempt(NamedTuple):
    """An isolation mode to try, and the missing features if it fails (empty if there is no other mode)."""

    isolation: Isolation
    network: Network
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running pod in the runner."""

    spec: SandboxSpec
    address: str
    on_lost: Callable[[], None]


class SandboxRunner:
    """Runs pods on this machine, with a launcher.

    `isolation="plain"` forces plain processes; otherwise they are used only where the machine refuses namespaces. Use one
    `state_directory` per cluster: it holds the launcher's log, and an empty directory that the launcher mounts on.
    """

    def __init__(self, *, network: Network, state_directory: Path, isolation: Isolation = "namespaces") -> None:
        self._network = network
        self._isolation = isolation
        self._state_directory = state_directory
        self._launcher: Launcher | None = None
        self._egress: Egress | None = None
        self._block: LoopbackBlock | None = None
        self._pool: AddressPool | None = None
        self._granted: HostAttempt | None = None
        self._wrapper: str | None = None
        self._restarting = asyncio.Lock()
        self._changing = asyncio.Semaphore(AT_ONCE)
        self._launcher_exits = LauncherExits()
        self._files = 0
        self._cpu: cpugroups.CpuGroups | None = None
        self._sandboxes: dict[str, Sandbox] = {}
        self._on_exit: dict[str, Callable[[Exit], None]] = {}
        self._numbers = itertools.count(1)
        self._commands: dict[int, str] = {}

    async def start(self) -> Capabilities:
        """Prepare the machine, and return the granted capabilities."""
        await self.stop()
        self._files = raise_limit()
        self._cpu = cpugroups.find_groups()
        return await self._start(self._attempts())

    async def _start(self, attempts: Sequence[HostAttempt]) -> Capabilities:
        lost = [] if self._cpu else [NO_LIMITS]
        isolation, network, _ = self._granted = await self._launch(attempts, lost)
        if self._is_plain:
            self._wrapper = await asyncio.to_thread(plainnames.find_wrapper)
            lost += [] if self._wrapper else [plainnames.ONLY_PYTHON]
        if network == "isolated":
            self._pool = AddressPool(POD_NETWORK)
            self._egress = Egress(self._state_directory)
            lost += await self._egress.open(self._require_launcher())
        elif sys.platform == "linux":
            self._block = LoopbackBlock()
            self._pool = AddressPool(self._block.network)
        return Capabilities(isolation == "namespaces", network, tuple(lost))

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Wait for access to the launcher.

        It ends with the body, or after `LONGEST_TURN`, as a mount may wait forever.
        """
        loop = asyncio.get_running_loop()
        await self._changing.acquire()
        end = loop.call_later(LONGEST_TURN, self._changing.release)
        try:
            yield
        finally:
            if end.when() > loop.time():
                end.cancel()
                self._changing.release()

    async def create_sandbox(self, spec: SandboxSpec, on_lost: Callable[[], None]) -> str:
        """Create the namespaces and network of the pod, and return its IP address."""
        await self._restart_launcher()
        launcher = self._require_launcher()
        address = self._take_address(spec)
        try:
            async with self.acquire():
                await launcher.channel.request("create", {"pod": fields_of(spec) | {"address": address}})
        except BaseException:
            self._release_address(address)
            raise
        self._sandboxes[spec.id] = Sandbox(spec, address, on_lost)
        return address

    async def start_container(self, spec: ContainerSpec, on_exit: Callable[[Exit], None]) -> int:
        """Start a process in its sandbox, and return its PID on the host."""
        if self._is_plain and (sandbox := self._sandboxes.get(spec.sandbox_id)) is not None:
            hosts = (sandbox.spec.hosts_directory / "hosts").absolute()
            spec = replace(spec, env=plainnames.with_names(spec.env, hosts, sandbox.spec.hostname, self._wrapper))
        async with self.acquire():
            request = {"key": spec.id, "pod": spec.sandbox_id, "container": fields_of(spec)}
            return await self._begin("start", request, (spec.stdout, spec.stderr), on_exit)

    async def exec(
        self, container_id: str, argv: tuple[str, ...], fds: tuple[int, int, int], on_exit: Callable[[Exit], None]
    ) -> int:
        """Start an additional process in a running container, and return its PID on the host."""
        key = f"exec-{next(self._numbers)}-{container_id}"

        def forget(end: Exit) -> None:
            self._commands = {pid: command for pid, command in self._commands.items() if command != key}
            on_exit(end)

        pid = await self._begin("exec", {"key": key, "container": container_id, "argv": list(argv)}, fds, forget)
        self._commands[pid] = key
        return pid

    async def kill_exec(self, pid: int) -> None:
        """Kill a process that `exec` started, and its descendants. Ignore an exited process."""
        key = self._commands.get(pid)
        if key is not None:
            await self.signal(key, signal.SIGKILL, everything=True)

    async def signal(self, container_id: str, signal: int, *, everything: bool = False) -> None:
        """Signal the main process of the container, or all its processes. Ignore a terminated container."""
        await self._request_if_running(
            "signal", {"container": container_id, "signal": int(signal), "everything": everything}
        )

    async def open_socket(self, sandbox_id: str | None) -> socket.socket:
        """Return an unconnected, non-blocking TCP socket in the network of the pod, or of all pods if it is None."""
        response = await self._require_launcher().channel.request("socket", {"pod": sandbox_id})
        sock = socket.socket(fileno=response.fds[0])
        sock.setblocking(False)
        return sock

    async def drop_packets(self, losses: Sequence[PacketLoss]) -> None:
        """Drop only these packets between sandboxes."""
        await self._require_launcher().channel.request("lose", {"rules": losses})

    async def delay_packets(self, sandbox_id: str, seconds: float) -> None:
        """Delay every packet to a sandbox by this time, or stop the delay if it is 0."""
        await self._require_launcher().channel.request("delay", {"pod": sandbox_id, "seconds": seconds})

    async def resize_memory(self, container_id: str, path: str, size: int) -> int:
        """Resize an in-memory file system of a container, or shrink it to its content if 0.

        Return the previous size in bytes.
        """
        request = {"container": container_id, "path": path, "size": size}
        return int((await self._require_launcher().channel.request("bound", request)).message["size"])

    async def read_usage(self, pids: Collection[int]) -> Mapping[int, ResourceUsage]:
        """Return the usage of containers, from /proc."""
        return await asyncio.to_thread(processstats.read_usage, frozenset(pids))

    async def read_memory(self, pid: int) -> int:
        """Return the memory of a container in bytes, from /proc."""
        return await asyncio.to_thread(processstats.read_memory, pid)

    async def limit_cpu(self, pid: int, cores: float) -> None:
        """Limit the CPU time of a container, if this machine permits a cgroup."""
        if self._cpu is not None:
            await asyncio.to_thread(self._cpu.limit, pid, cores)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Kill the remaining processes, and release network and mounts of the sandbox. Ignore a missing sandbox."""
        async with self.acquire():
            await self._request_if_running("remove", {"pod": sandbox_id})
        sandbox = self._sandboxes.pop(sandbox_id, None)
        if sandbox is not None:
            self._release_address(sandbox.address)

    async def stop(self) -> None:
        """Remove all sandboxes and stop the runner."""
        self._granted = None
        await self._clear()
        if self._cpu is not None:
            await asyncio.to_thread(self._cpu.close)
            self._cpu = None
        if self._files:
            restore_limit(self._files)
            self._files = 0

    async def _clear(self) -> None:
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            await launcher.stop()
        if self._egress is not None:
            await self._egress.close()
            self._egress = None
        if self._block is not None:
            self._block.release()
            self._block = None
        self._sandboxes.clear()
        self._pool = None

    async def _restart_launcher(self) -> None:
        """Start a new launcher if the previous one exited. Raise `LauncherEndedError` during the backoff."""
        async with self._restarting:
            if self._granted is None or (self._launcher is not None and not self._launcher.channel.closed):
                return
            not_before = self._launcher_exits.not_before
            if backoff.is_before(not_before, SystemClock().now()):
                raise LauncherEndedError(
                    f"the launcher of the pods exited repeatedly. It is not restarted before {not_before:%H:%M:%S} UTC. See {log_path(self._state_directory)}"
                )
            await self._clear()
            try:
                await self._start([self._granted])
            except StartError:
                self._launcher_exits.note(SystemClock().now())
                raise

    async def _launch(self, attempts: Sequence[HostAttempt], lost: list[str]) -> HostAttempt:
        rejections: list[tuple[str, str]] = []
        for attempt in attempts:
            isolation, network, without = attempt
            options = LaunchOptions(
                isolation=isolation,
                gateway=GATEWAY if network == "isolated" else None,
                state_directory=self._state_directory,
                files=self._files,
            )
            try:
                self._launcher = await launch(options, self._on_event, self._on_closed)
            except LauncherRefusedError as error:
                if not without:
                    raise StartError(f"cannot start the launcher of the pods: {error}") from error
                rejections.append((without, str(error)))
            else:
                lost += _describe_missing(rejections)
                if self._isolation == "plain":
                    lost.append(NO_NAMESPACES)
                return attempt
        raise AssertionError("the last attempt returns or raises")

    def _attempts(self) -> list[HostAttempt]:
        """Return the isolation modes to try, best first."""
        plain = HostAttempt("plain", "shared")
        if self._isolation == "plain":
            return [plain]
        shared = [HostAttempt("namespaces", "shared", NO_NAMESPACES), plain]
        return shared if self._network == "shared" else [HostAttempt("namespaces", "isolated", NO_NETWORKS), *shared]

    @property
    def _is_plain(self) -> bool:
        return self._granted is not None and self._granted.isolation == "plain"

    def _require_launcher(self) -> Launcher:
        if self._launcher is None or self._launcher.channel.closed:
            raise LauncherEndedError("the launcher of the pods is not running")
        return self._launcher

    async def _request_if_running(self, op: str, fields: Message) -> None:
        """Send a request. If the launcher has exited, the request is already fulfilled."""
        with suppress(LauncherEndedError):
            await self._require_launcher().channel.request(op, fields)

    async def _begin(self, op: str, fields: Message, fds: tuple[int, ...], on_exit: Callable[[Exit], None]) -> int:
        launcher = self._require_launcher()
        self._on_exit[fields["key"]] = on_exit
        try:
            response = await launcher.channel.request(op, fields, fds)
        except StartError:
            self._on_exit.pop(fields["key"], None)
            raise
        return int(response.message["pid"])

    def _take_address(self, spec: SandboxSpec) -> str:
        if self._pool is None:
            return LOOPBACK
        if spec.host_network and self._granted is not None and self._granted.network == "isolated":
            return GATEWAY
        try:
            return self._pool.allocate()
        except AddressesExhaustedError as error:
            raise StartError(f"pod {spec.hostname}: {error}") from error

    def _release_address(self, address: str) -> None:
        if self._pool is not None:
            self._pool.release(address)

    def _on_event(self, event: Message) -> None:
        on_exit = self._on_exit.pop(event["exit"], None)
        if on_exit is not None:
            on_exit(Exit(event["code"], event["signal"]))

    def _on_closed(self) -> None:
        loop = asyncio.get_running_loop()
        if self._granted is not None:  # the runner is not being stopped
            self._launcher_exits.note(SystemClock().now())
            for sandbox in self._sandboxes.values():
                loop.call_soon(sandbox.on_lost)
            self._sandboxes.clear()
        ended, self._on_exit = self._on_exit, {}
        for on_exit in ended.values():
            loop.call_soon(on_exit, KILLED)


def fields_of(spec: SandboxSpec | ContainerSpec) -> Message:
    """Return a spec in the format of the launcher (`launcher/launchspecs.py`), with absolute paths."""
    return asdict(spec, dict_factory=_plain)


def _plain(fields: list[tuple[str, object]]) -> Message:
    return {name: str(value.absolute()) if isinstance(value, Path) else value for name, value in fields}


def _describe_missing(rejections: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line for each missing feature, with its reason.

    If several consecutive losses have one reason, the last line has it.

    >>> _describe_missing([("a network", "no namespaces"), ("volumes", "no namespaces")])
    ['a network', 'volumes (no namespaces)']
    """
    following = itertools.zip_longest(rejections, rejections[1:], fillvalue=("", ""))
    return [without if reason == after else f"{without} ({reason})" for (without, reason), (_, after) in following]
