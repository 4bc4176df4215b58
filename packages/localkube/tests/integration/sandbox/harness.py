"""Runs processes in real namespaces, and reads the pod output line by line."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localkube.kubelet.processes.runner import Capabilities, ContainerSpec, Exit, Network, ProcessRunner, SandboxSpec
from localkube.kubelet.sandbox.launcherprocess import Isolation
from localkube.kubelet.sandbox.sandboxrunner import SandboxRunner

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
DEADLINE = 20.0


@dataclass
class Program:
    """A started process with its PID on the host, its exit code, and its output."""

    id: str
    pid: int
    ended: asyncio.Future[Exit]
    output: asyncio.StreamReader

    async def line(self) -> str:
        """Return the next printed line."""
        return (await asyncio.wait_for(self.output.readline(), DEADLINE)).decode().rstrip("\n")

    async def end(self) -> Exit:
        """Return the exit status of the process."""
        return await asyncio.wait_for(asyncio.shield(self.ended), DEADLINE)

    async def finish(self) -> tuple[Exit, str]:
        """Return the exit status of the process, and its remaining output."""
        end = await self.end()
        return end, (await asyncio.wait_for(self.output.read(), DEADLINE)).decode()


@dataclass
class Machine:
    """A runner, and a directory for its pods."""

    runner: ProcessRunner
    capabilities: Capabilities
    directory: Path
    pods: int = 0
    programs: int = 0
    addresses: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    pipes: list[asyncio.ReadTransport] = field(default_factory=list)

    @property
    def hosts(self) -> Path:
        """Return the directory from which all pods mount the hosts file."""
        return self.directory / "hosts"

    def write_hosts(self, text: str) -> None:
        """Replace the hosts file in the same way as the kubelet."""
        new = self.hosts / "new"
        new.write_text(text)
        new.replace(self.hosts / "hosts")

    async def pod(self, name: str, **options: Any) -> str:
        """Create a pod. Return its ID."""
        directory = self.directory / name
        directory.mkdir()
        spec = SandboxSpec(id=name, hostname=name, directory=directory, hosts_directory=self.hosts, **options)
        self.addresses[name] = await self.runner.create_sandbox(spec, lambda: self.lost.append(name))
        return name

    async def start(self, pod: str, *argv: str, **options: Any) -> Program:
        """Start a container that writes its output to a pipe."""
        self.programs += 1
        identity = options.pop("id", f"{pod}-{self.programs}")
        env = {"PATH": PATH} | options.pop("env", {})

        async def begin(writing: int, on_exit: Callable[[Exit], None]) -> int:
            spec = ContainerSpec(
                id=identity, sandbox_id=pod, argv=argv, env=env, stdout=writing, stderr=writing, **options
            )
            return await self.runner.start_container(spec, on_exit)

        return await self._piped(identity, begin)

    async def sh(self, pod: str, script: str, **options: Any) -> tuple[Exit, str]:
        """Run a shell script in a separate container until the script exits."""
        program = await self.start(pod, "sh", "-c", script, **options)
        return await program.finish()

    async def exec(self, program: Program, *argv: str) -> Program:
        """Run a command in a container."""

        async def begin(writing: int, on_exit: Callable[[Exit], None]) -> int:
            with Path(os.devnull).open("rb") as null:
                return await self.runner.exec(program.id, argv, (null.fileno(), writing, writing), on_exit)

        return await self._piped(program.id, begin)

    async def close(self) -> None:
        """Stop all processes and the readers of their output."""
        await self.runner.stop()
        for pipe in self.pipes:
            pipe.close()
        await asyncio.sleep(0)  # a transport is closed in the next iteration of the event loop

    async def _piped(self, identity: str, begin: Callable[[int, Callable[[Exit], None]], Any]) -> Program:
        """Start a process that writes its output to a pipe."""
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe()
        ended: asyncio.Future[Exit] = loop.create_future()
        try:
            pid = await begin(writing, ended.set_result)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        reader = asyncio.StreamReader()
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
        )
        self.pipes.append(pipe)
        return Program(identity, pid, ended, reader)


@asynccontextmanager
async def machine(
    directory: Path, *, network: Network = "isolated", isolation: Isolation = "namespaces"
) -> AsyncIterator[Machine]:
    """Run a runner until the context exits."""
    runner = SandboxRunner(network=network, state_directory=directory / "state", isolation=isolation)
    capabilities = await runner.start()
    made = Machine(runner, capabilities, directory)
    made.hosts.mkdir()
    made.write_hosts("127.0.0.1 localhost\n")
    try:
        yield made
    finally:
        await made.close()


def is_alive(pid: int) -> bool:
    """Return whether a process is running. Zombies are not running."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(holds: Callable[[], bool], seconds: float = DEADLINE) -> bool:
    """Return whether the condition becomes true within the timeout. The kernel sends no notification for it."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
