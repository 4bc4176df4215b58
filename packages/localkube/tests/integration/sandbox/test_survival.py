"""Tests that no process, mount or file remains after the cluster process or the launcher is killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from testkit.repository import PATHS
from tests.integration.sandbox.harness import eventually, is_alive, machine

from localkube.kubelet.processes import processtree
from localkube.kubelet.processes.runner import ContainerSpec, Exit, Network, StartError
from localkube.kubelet.sandbox.launcher import containerinit
from localkube.kubelet.sandbox.launcherclient import LauncherEndedError
from localkube.kubelet.sandbox.launcherprocess import Isolation

pytestmark = pytest.mark.slow

NOBODY = 65534
GROUNDS = [
    pytest.param("isolated", "namespaces", id="isolated", marks=pytest.mark.sandbox),
    pytest.param("shared", "namespaces", id="host-network", marks=pytest.mark.sandbox),
    pytest.param("shared", "plain", id="plain"),
]


@contextmanager
def cluster_process(
    directory: Path,
    network: str,
    isolation: str,
    *,
    python: str = sys.executable,
    user: int | None = None,
    prefix: tuple[str, ...] = (),
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start a process with pods, and kill it when the context exits."""
    with subprocess.Popen(
        [
            *prefix,
            python,
            "-B",
            str(Path(__file__).with_name("cluster_process.py")),
            str(directory),
            network,
            isolation,
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env={"PYTHONPATH": ":".join(str(path) for path in PATHS), "PATH": os.environ["PATH"]},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the process ended early; its words are above"
        try:
            yield process, json.loads(line)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["KILL", "TERM", "INT"])
@pytest.mark.parametrize(("network", "isolation"), GROUNDS)
def test_nothing_survives_the_cluster_process(
    tmp_path: Path, network: str, isolation: str, number: signal.Signals
) -> None:
    mounts, links = _mounts(), _links()
    with cluster_process(tmp_path, network, isolation) as (process, _):
        started = processtree.descendants([process.pid], processtree.read())
        assert len(started) > 8
        process.send_signal(number)
        process.wait(20)
        assert eventually(lambda: not any(is_alive(pid) for pid in started))
    assert _mounts() == mounts
    assert _links() == links


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else; the other tests show the same")
@pytest.mark.sandbox
@pytest.mark.parametrize("network", ["isolated", "shared"])
def test_unprivileged_user_has_the_same_guarantees(network: str) -> None:
    python = _python_for(NOBODY)
    if python is None:
        pytest.skip("no Python >= 3.11 that user nobody may run")
    # A separate directory, because only the owner can access the directories of pytest.
    with TemporaryDirectory(dir="/tmp", prefix="lws-nobody-") as directory:
        os.chown(directory, NOBODY, NOBODY)
        with cluster_process(Path(directory), network, "namespaces", python=python, user=NOBODY) as (_, facts):
            assert (facts["namespaces"], facts["network"]) == (True, network), facts["lost"]
            hosts = "127.0.0.1 localhost"
            assert [seen.splitlines() for seen in facts["seen"]] == [
                ["a", str(NOBODY), hosts, "a"],
                ["b", str(NOBODY), hosts, "a", "b"],
            ]
    assert not Path("/lws-volume").exists()


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("limit", "namespaces", "words"),
    [
        ("max_user_namespaces", False, "volumes and reliable termination of daemons"),
        ("max_net_namespaces", True, "pod networks: all pods share the host"),
    ],
)
def test_unavailable_kernel_features_are_reported_as_missing(
    tmp_path: Path, limit: str, namespaces: bool, words: str
) -> None:
    refusing = ("unshare", "-Ur", "sh", "-c", f'echo 0 >/proc/sys/user/{limit}; exec "$@"', "sh")
    with cluster_process(tmp_path, "isolated", "namespaces", prefix=refusing) as (_, facts):
        assert (facts["namespaces"], facts["network"]) == (namespaces, "shared")
        assert any(line.startswith(words) and "check the limits in /proc/sys/user" in line for line in facts["lost"])


@pytest.mark.parametrize(("network", "isolation"), GROUNDS)
async def test_dead_launcher_is_replaced_after_reporting_losses(
    tmp_path: Path, network: Network, isolation: Isolation
) -> None:
    async with machine(tmp_path, network=network, isolation=isolation) as made:
        pod = await made.pod("a")
        program = await made.start(pod, "sleep", "1000")
        _kill_launcher()
        assert await program.end() == Exit(137, 9)
        assert made.lost == [pod]
        assert eventually(lambda: not is_alive(program.pid))
        with pytest.raises(LauncherEndedError):
            await made.start(pod, "true")
        await made.runner.remove_sandbox(pod)
        await made.runner.signal(program.id, 15)
        assert (await made.sh(await made.pod("b"), "exit 4"))[0] == Exit(4)
        await made.runner.remove_sandbox("b")
        other = await made.start(await made.pod("c"), "sleep", "1000")
        _kill_launcher()
        await other.end()
        assert made.lost == [pod, "c"]
        with pytest.raises(StartError, match=r"exited repeatedly\. It is not restarted before"):
            await made.pod("d")


async def test_stop_reports_running_programs(tmp_path: Path) -> None:
    async with machine(tmp_path, network="shared", isolation="plain") as made:
        program = await made.start(await made.pod("a"), "sleep", "1000")
        await made.runner.stop()
        assert await program.end() == Exit(137, 9)
        assert eventually(lambda: not is_alive(program.pid))


async def test_exit_is_reported_once_after_the_start(tmp_path: Path) -> None:
    async with machine(tmp_path, network="shared", isolation="plain") as made:
        pod = await made.pod("a")
        told: list[str] = []
        done = asyncio.Event()
        for number in range(20):
            done.clear()

            def on_exit(_: Exit) -> None:
                told.append("end")
                done.set()

            spec = ContainerSpec(id=f"c{number}", sandbox_id=pod, argv=("true",), env={}, stdout=1, stderr=2)
            await made.runner.start_container(spec, on_exit)
            told.append("start")
            await asyncio.wait_for(done.wait(), 10)
        assert told == ["start", "end"] * 20


STARTING = """
import os, signal, socket
from localkube.kubelet.sandbox.launcher import containerinit
from localkube.kubelet.sandbox.launcher.launcherconnection import LauncherConnection

ours, theirs = socket.socketpair()
report = containerinit.Report(LauncherConnection(theirs), None)
pid = containerinit.start(lambda: os.execvp("sleep", ["sleep", "1000"]), report, own=())
print(pid, flush=True)
os.kill(os.getpid(), signal.SIGTERM)
containerinit.watch(pid, report.link)
"""
"""The first process of a container without namespaces. Its launcher exits after the executable has started."""


def test_process_exits_if_its_launcher_exits_during_the_start() -> None:
    first = subprocess.run([sys.executable, "-c", STARTING], capture_output=True, text=True, timeout=30, check=False)
    assert (first.returncode, first.stderr) == (containerinit.FAILED, "")
    assert not is_alive(int(first.stdout))


def _kill_launcher() -> None:
    launcher = next(
        pid for pid in processtree.descendants([os.getpid()], processtree.read()) if _name(pid) == "kube-launcher"
    )
    os.kill(launcher, signal.SIGKILL)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _mounts() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _links() -> list[str]:
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def _python_for(user: int) -> str | None:
    """Return a Python executable that the user may run, because home directories are not accessible."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = [candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(probe, user=user, group=user, extra_groups=[], check=False, cwd="/").returncode == 0:
                return candidate
        except OSError:
            continue
    return None
