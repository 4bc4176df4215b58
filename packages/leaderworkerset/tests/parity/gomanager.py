"""Runs the controllers of the Go manager, if it was built, as a process next to a control plane.

    async with go_manager(kubeconfig, directory): …

Its webhooks stay off, so that the same webhooks serve pods under any manager; its decisions depend only on the objects.
If a port is given, it serves the webhooks there, with the certificate in `directory / CERTIFICATES`.
"""

import asyncio
import os
import signal
import subprocess
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from tests.controlplane.process import StartError, free_ports, stop
from tests.kubernetes.programs import build

START_SECONDS: Final = 60.0
POLL: Final = 0.1

CERTIFICATES: Final = "go-certificates"
CONFIGURATION: Final = {
    "apiVersion": "config.lws.x-k8s.io/v1alpha1",
    "kind": "Configuration",
    "leaderElection": {"leaderElect": False},
    "internalCertManagement": {"enable": False},
}


@asynccontextmanager
async def go_manager(
    kubeconfig: Path, directory: Path, webhooks: int | None = None
) -> AsyncIterator["subprocess.Popen[bytes]"]:
    """Run the Go manager for the duration of the `with` block. Raise StartError if it does not start.

    The caller may kill it.
    """
    program = build.LWS.find()
    assert program is not None, build.LWS.missing
    (port,) = free_ports(1)
    webhook = {"webhook": {"port": webhooks, "certDir": str(directory / CERTIFICATES)}} if webhooks else {}
    file = directory / "go.yaml"
    file.write_bytes(msgspec.json.encode(CONFIGURATION | webhook))
    environment = {"KUBECONFIG": str(kubeconfig)} | ({"ENABLE_WEBHOOKS": "false"} if webhooks is None else {})
    process = _start(program, environment, file, port)
    try:
        await _await_ready(process, port, directory / "go.log")
        yield process
        assert process.poll() in (None, -signal.SIGKILL), _end_of(directory / "go.log")
    finally:
        await asyncio.to_thread(stop, process)


def _start(program: Path, environment: dict[str, str], file: Path, port: int) -> "subprocess.Popen[bytes]":
    words = (f"--config={file}", "--leader-elect=false", "--metrics-bind-address=0")
    with file.with_name("go.log").open("ab") as log:
        return subprocess.Popen(
            [str(program), *words, f"--health-probe-bind-address=127.0.0.1:{port}"],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


async def _await_ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    while not await asyncio.to_thread(_answers, f"http://127.0.0.1:{port}/readyz"):
        if process.poll() is not None or asyncio.get_running_loop().time() > deadline:
            raise StartError(f"the Go manager is not ready: {_end_of(log)}")
        await asyncio.sleep(POLL)


def _answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
        return bool(answer.status == 200)
    return False


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]
