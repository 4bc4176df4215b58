"""The way from the pods' network to the world outside, by a program that is installed: slirp4netns.

It puts a tap interface on the pods' bridge and speaks for it with the user's own sockets, so that nothing is changed on
the host and no other machine can reach a pod. The host's own loopback (the API server's) stays out of the pods' reach.
"""

import asyncio
import os
import select
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leaderworkerset.embedded.kubelet.runner import StartError
from leaderworkerset.embedded.kubelet.sandbox.addresses import POD_NETWORK, WAY_OUT_GATEWAY, WAY_OUT_NAMESERVER
from leaderworkerset.embedded.kubelet.sandbox.launch import Launcher

_INTERFACE = "tap0"
_MTU = "65520"
_SECONDS_TO_START = 5
NO_WAY_OUT = (
    "a way out of the pods' network: pods reach each other and nothing else; slirp4netns, if installed, makes one"
)


@dataclass(frozen=True, slots=True)
class Granted:
    """Which way out there is, and what is lost."""

    kind: Literal["slirp4netns", "none"]
    lost: tuple[str, ...] = ()


class WayOut:
    """The program that carries the pods' traffic, if there is one."""

    def __init__(self, state_directory: Path) -> None:
        self._log = state_directory / "slirp4netns.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: int | None = None

    async def open(self, launcher: Launcher) -> Granted:
        """Start the program and put its interface on the bridge; go without where that fails, saying so."""
        program = shutil.which("slirp4netns")
        if program is None:
            return Granted("none", (NO_WAY_OUT,))
        if not await asyncio.to_thread(self._start, program, launcher.pid):
            await self.close()
            return Granted("none", (f"{NO_WAY_OUT} (slirp4netns does not start; see {self._log})",))
        try:
            await launcher.channel.request(
                "attach",
                {"interface": _INTERFACE, "gateway": WAY_OUT_GATEWAY, "nameserver": WAY_OUT_NAMESERVER},
            )
        except StartError as error:
            await self.close()
            return Granted("none", (f"{NO_WAY_OUT} ({error})",))
        return Granted("slirp4netns")

    async def close(self) -> None:
        """End the program."""
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)
            self._process = None

    def _start(self, program: str, pid: int) -> bool:
        """Start it on a leash: a pipe whose closing, by us or by our death, ends it."""
        ready, said_ready = os.pipe()
        held, self._leash = os.pipe()
        options = ["--disable-host-loopback", f"--mtu={_MTU}", f"--cidr={POD_NETWORK}"]
        with os.fdopen(ready, "rb") as answer, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, *options, f"--ready-fd={said_ready}", f"--exit-fd={held}", str(pid), _INTERFACE],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(said_ready, held),
                start_new_session=True,
            )
            os.close(said_ready)
            os.close(held)
            readable, _, _ = select.select([answer], [], [], _SECONDS_TO_START)
            return bool(readable) and answer.read(1) == b"1"
