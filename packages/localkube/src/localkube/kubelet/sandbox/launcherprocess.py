"""Starts the launcher process. An error contains the reason if it cannot start."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import localkube
from localkube.certificate import build_certificate
from localkube.kubelet.sandbox.launcher.launcherconnection import ConnectionClosedError, LauncherConnection, Message
from localkube.kubelet.sandbox.launcherclient import LauncherClient
from localkube.kubelet.spec import backoff
from localkube.statedirectory import open_private

Isolation: TypeAlias = Literal["namespaces", "plain"]

_LOADER = "import sys; sys.path.append(sys.argv[2]); from localkube.kubelet.sandbox.launcher.main import main; main()"
DIRECTORY = Path(localkube.__file__).parents[1]
"""The directory with the modules of the launcher."""


class LauncherRefusedError(Exception):
    """The machine does not meet a requirement of this type of launcher. The message contains the requirement."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """A running launcher. `pid` is the process inside the namespaces. To wait for its exit, use `process`."""

    process: subprocess.Popen[bytes]
    pid: int
    channel: LauncherClient

    async def stop(self) -> None:
        """Stop the launcher and all its descendants, and wait until they have exited."""
        self.channel.close()
        await asyncio.to_thread(self.process.wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The options of a launcher: its isolation, and the address of its bridge (None for the host network).

    `files` is the limit of open files for programs of pods.
    """

    isolation: Isolation
    gateway: str | None
    state_directory: Path
    files: int


def log_path(state_directory: Path) -> Path:
    """Return the file for unexpected errors of a launcher."""
    return state_directory / "launcher.log"


async def launch(
    options: LaunchOptions, on_event: Callable[[Message], None], on_closed: Callable[[], None]
) -> Launcher:
    """Start a launcher and wait until it is ready. It exits with the calling thread, which runs the event loop."""
    run = options.state_directory / "sandbox"
    run.mkdir(parents=True, exist_ok=True)
    log = log_path(options.state_directory)
    ours, theirs = socket.socketpair()
    with theirs, open_private(log) as errors, _stub_identity() as identity:
        configuration = {
            "fd": theirs.fileno(),
            "parent": os.getpid(),
            "isolation": options.isolation,
            "gateway": options.gateway,
            "run": str(run.resolve()),
            "files": options.files,
            "identity": identity,
        }
        process = subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond, and must be this thread's child
            [sys.executable, "-I", "-S", "-c", _LOADER, json.dumps(configuration), str(DIRECTORY)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(theirs.fileno(), identity),
            start_new_session=True,
        )
    link = LauncherConnection(ours)
    try:
        pid = await _wait_until_ready(link)
    except (LauncherRefusedError, ConnectionClosedError) as error:
        link.close()
        await asyncio.to_thread(process.wait)
        raise LauncherRefusedError(str(error) or f"the launcher exited{_last_line(log)}. See {log}") from error
    except BaseException:
        link.close()  # this stops the launcher
        raise
    return Launcher(process, pid, LauncherClient(link, on_event, on_closed))


@contextmanager
def _stub_identity() -> Iterator[int]:
    """Yield a descriptor of an in-memory file with the key and certificate of stubs, which must not be on disk."""
    descriptor = os.memfd_create("identity-of-stubs")
    try:
        certificate, key = build_certificate(datetime.now(UTC), "stub")
        os.write(descriptor, key + certificate)
        yield descriptor
    finally:
        os.close(descriptor)


async def _wait_until_ready(link: LauncherConnection) -> int:
    loop = asyncio.get_running_loop()
    link.sock.setblocking(False)
    while True:
        readable = asyncio.Event()
        loop.add_reader(link.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(link.fileno())
        for message in [received.message for received in link.receive()]:
            if "refused" in message:
                raise LauncherRefusedError(message["refused"])
            return int(message["ready"])


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return f": {lines[-1]}" if lines else " without an error message"


class LauncherExits:
    """Counts launcher exits. There is no backoff after the first exit, or after a long time without an exit."""

    def __init__(self) -> None:
        self.not_before = datetime.min.replace(tzinfo=UTC)
        self._backoff = backoff.Backoff()

    def note(self, now: datetime) -> None:
        """Record the exit of a launcher, or a failed start."""
        self.not_before = now + self._backoff.wait(now)
        self._backoff = self._backoff.after_restart(now, now)
