"""Connects the pod network to other networks with an installed proxy, which is pasta or slirp4netns.

Either creates a tap interface in the pods' network and forwards its traffic through sockets of the user. Nothing is
changed on the host (no forwarding, no firewall rule, no root), and other machines cannot reach pods. Pods cannot reach
the host's loopback, where the API server listens. The program ends with the cluster process.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from localkube.kubelet.processes.runner import StartError
from localkube.kubelet.sandbox.ipam import POD_NETWORK, WAY_OUT_GATEWAY, WAY_OUT_NAMESERVER
from localkube.kubelet.sandbox.launcherprocess import DIRECTORY, Launcher
from localkube.statedirectory import open_private

_LOADER = (
    "import sys; sys.path.append(sys.argv[1]); from localkube.kubelet.sandbox.launcher.parentwatch import main; main()"
)
LOG_LIMIT = 2**20
"""The maximum size of the proxy log in bytes. A full log is emptied at the next start."""

_INTERFACE = "tap0"
_SECONDS_TO_START = 5.0
_SECONDS_BETWEEN_LOOKS = 0.02
NO_WAY_OUT = "egress: pods can only connect to each other"


@dataclass(frozen=True, slots=True)
class EgressProgram:
    """A proxy that forwards the traffic of pods, with its options and the addresses for pods."""

    kind: Literal["pasta", "slirp4netns"]
    options: tuple[str, ...]
    gateway: str | None
    nameserver: str


CARRIERS = (
    EgressProgram(
        "slirp4netns",
        ("--disable-host-loopback", "--mtu=65520", f"--cidr={POD_NETWORK}"),
        WAY_OUT_GATEWAY,
        WAY_OUT_NAMESERVER,
    ),
    EgressProgram(
        "pasta",
        (
            *("--foreground", "--quiet", "--config-net", "--no-map-gw", "--ipv4-only", "--dns-forward=169.254.1.1"),
            *("--tcp-ports=none", "--udp-ports=none", "--tcp-ns=none", "--udp-ns=none", f"--ns-ifname={_INTERFACE}"),
            *(("--runas=0",) if os.geteuid() == 0 else ()),
        ),
        None,
        "169.254.1.1",
    ),
)


class Egress:
    """The proxy that forwards the traffic of pods, if a proxy is available."""

    def __init__(self, state_directory: Path) -> None:
        self._log = state_directory / "way-out.log"
        self._process: subprocess.Popen[bytes] | None = None

    async def open(self, launcher: Launcher, carriers: Sequence[EgressProgram] = CARRIERS) -> list[str]:
        """Start the first proxy that works. If no proxy works, return the effect on pods."""
        failures = []
        for carrier in carriers:
            program = shutil.which(carrier.kind)
            if program is None:
                continue
            self._process = self._start(program, carrier, launcher.pid)
            failure = await self._attach(launcher, carrier, self._process)
            if failure is None:
                return []
            failures.append(f"{carrier.kind}: {failure}. See {self._log}")
            await self.close()
        hint = "; ".join(failures) or "install slirp4netns or pasta"
        return [f"{NO_WAY_OUT} ({hint})"]

    async def close(self) -> None:
        """Stop the proxy."""
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
            self._process = None

    def _start(self, program: str, carrier: EgressProgram, pid: int) -> subprocess.Popen[bytes]:
        last = (str(pid), _INTERFACE) if carrier.kind == "slirp4netns" else (str(pid),)
        with open_private(self._log) as log:
            if log.tell() >= LOG_LIMIT:
                log.truncate(0)
            return subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-c", _LOADER, str(DIRECTORY), str(os.getpid()), str(LOG_LIMIT)),
                    *(program, *carrier.options, *last),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def _attach(self, launcher: Launcher, carrier: EgressProgram, process: subprocess.Popen[bytes]) -> str | None:
        """Connect the pods to the interface of the proxy when it exists. Return the error, or None if it succeeds."""
        route = {"interface": _INTERFACE, "gateway": carrier.gateway, "nameserver": carrier.nameserver}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SECONDS_TO_START
        while True:
            try:
                await launcher.channel.request("attach", route)
            except StartError as error:
                if process.poll() is not None:
                    return f"the process exited with code {process.returncode}"
                if loop.time() > deadline:
                    return str(error)
            else:
                return None
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
