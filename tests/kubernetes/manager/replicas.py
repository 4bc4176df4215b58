"""Starts, queries, stops and kills managers that run as processes."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
from testkit.repository import ROOT
from tests.controlplane.process import free_ports

from kuberuntime.serving.bindaddresses import DISABLED
from leaderworkerset.install import workload
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.manager import goflags, managerflags
from leaderworkerset.manager.config import configuration as config

ENTRY: Final = ROOT / "deploy" / "manager"
"""The command of the manager image, which Deployments run."""

T = TypeVar("T")

LIMIT: Final = 40.0
"""The timeout of each condition, in seconds."""

POLL: Final = 0.15
"""The interval in seconds between two checks of another process. Each check is a request of about 10 ms."""

LEASE_SECONDS: Final = 3.0

LONG_LEASE: Final = {"leaseDuration": f"{2 * LIMIT:g}s", "renewDeadline": f"{LIMIT:g}s"}
"""A lease that does not expire during a test."""


@dataclass
class Replica:
    """A manager process that is started as in its Deployment, but with separate ports. `flags` are appended."""

    directory: Path
    name: str
    kubeconfig: Path
    configuration: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    flags: Sequence[str] = ("--zap-log-level=info",)
    program: Sequence[str] = ("-IBu", str(ENTRY))

    def __post_init__(self) -> None:
        self.webhooks, self.probes, self.metrics = free_ports(3)
        self.log = self.directory / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        file = self.directory / f"{self.name}.yaml"
        file.write_text(json.dumps(self.document()))
        (container,) = workload.deployment(InstallSettings())["spec"]["template"]["spec"]["containers"]
        words = [word.replace(workload.CONFIGURATION_PATH, str(file)) for word in container["args"]]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self.program, *words, f"--kubeconfig={self.kubeconfig}", *self.flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"HOME": str(self.directory)} | self.environment,
            )

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """Return the process."""
        assert self._process is not None
        return self._process

    def check(self) -> None:
        """Assert that the process has not exited."""
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.tail()}"

    def chosen(self) -> config.Configuration:
        """Return the configuration with the flags."""
        given = goflags.parse(self.flags, managerflags.FLAGS)
        return managerflags.override(config.decode(self.document()), given)

    async def await_ready(self) -> None:
        """Wait until the manager is ready or, if probes are disabled, until it serves webhooks."""
        has_probes = self.chosen().health.health_probe_bind_address not in DISABLED
        await until(self._is_ready if has_probes else self._serves_webhooks, self)

    async def await_end(self) -> int:
        """Wait until the process has exited on its own. Return its exit code."""
        await until(self._has_ended, self)
        return int(self.process.returncode)

    async def stop(self) -> float:
        """Stop the process. Return the duration of the termination in seconds."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        await until(self._has_ended, self)
        assert self.process.returncode == 0, self.tail()
        return time.monotonic() - begun

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Pause the process."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the process."""
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process if it is still running."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def resident_mebibytes(self) -> float:
        """Return the resident memory of the process."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))

    async def metrics_with(self, token: str) -> tuple[int, str]:
        """Return the metrics of the manager."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{self.metrics}/metrics", headers=headers, ssl=False) as answer,
        ):
            assert answer.version == aiohttp.HttpVersion11
            return answer.status, await answer.text()

    def failures(self) -> list[str]:
        """Return the unexpected errors in the log."""
        lines = self.log.read_text(errors="replace").splitlines()
        signs = ("Traceback", '{"level":"error"')
        return [line for line in lines if "\tERROR\t" in line or line.startswith(signs)]

    def tail(self) -> str:
        """Return the end of the log."""
        return self.log.read_text(errors="replace")[-4000:]

    async def readiness(self) -> str:
        """Check readiness in the same way as the kubelet.

        Return the response, or an empty string if there is none.
        """
        self.check()
        path = self.chosen().health.readiness_endpoint_name
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self.probes}/{path.lstrip('/')}") as answer,
            ):
                return await answer.text()
        except aiohttp.ClientError:
            return ""

    def document(self) -> dict[str, Any]:
        """Return the configuration with these fields and with unused ports."""
        own: dict[str, Any] = {
            "webhook": {"port": self.webhooks, "host": "127.0.0.1"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.probes}"},
            "metrics": {"bindAddress": f"127.0.0.1:{self.metrics}"},
            "leaderElection": {"leaseDuration": f"{LEASE_SECONDS:g}s", "renewDeadline": "2s", "retryPeriod": "500ms"},
        }
        sections = {name: fields | self.configuration.get(name, {}) for name, fields in own.items()}
        return {"apiVersion": config.API_VERSION, "kind": config.KIND} | self.configuration | sections

    async def _serves_webhooks(self) -> bool:
        self.check()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.webhooks)) == 0

    async def _is_ready(self) -> bool:
        return await self.readiness() == "ok"

    async def _has_ended(self) -> bool:
        return self.process.poll() is not None


async def until(
    holds: Callable[[], Coroutine[Any, Any, T]], *replicas: Replica, seconds: float = LIMIT, poll: float = POLL
) -> T:
    """Poll every `poll` seconds until the result is true. Return the result. On timeout, show the replica logs."""
    try:
        async with asyncio.timeout(seconds):
            while not (answer := await holds()):
                await asyncio.sleep(poll)
            return answer
    except TimeoutError as error:
        logs = "\n".join(f"--- {replica.name}\n{replica.tail()}" for replica in replicas)
        raise AssertionError(f"not within {seconds:.0f} s: {holds}\n{logs}") from error
