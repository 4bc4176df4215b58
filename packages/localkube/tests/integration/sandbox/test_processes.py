"""Tests the start and termination of containers, signals, zombies, daemons, and commands in containers."""

import asyncio
import os
import pty
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.sandbox.harness import Machine, Program, eventually, is_alive, machine

from localkube.kubelet.processes.runner import Exit, Network, SandboxSpec, StartError
from localkube.kubelet.sandbox import plainnames
from localkube.kubelet.sandbox.launcherprocess import Isolation

pytestmark = pytest.mark.slow

GROUNDS = [
    pytest.param("namespaces", "isolated", False, id="namespaces", marks=pytest.mark.sandbox),
    pytest.param("namespaces", "isolated", True, id="shared-processes", marks=pytest.mark.sandbox),
    pytest.param("namespaces", "shared", False, id="host-network", marks=pytest.mark.sandbox),
    pytest.param("plain", "shared", False, id="plain"),
]
on_every_ground = pytest.mark.parametrize(("isolation", "network", "share"), GROUNDS)

DAEMON = """
import os, sys, time
said, saying = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", flush=True)
        os.write(saying, b"1")
        time.sleep(1000)
    os._exit(0)
os.wait()
os.read(said, 1)
"""
IGNORE_TERM = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(1000)"
ORPHANS = """
import os, time
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.01)
        os._exit(0)
    os.wait()
print("made", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def made(tmp_path: Path, isolation: Isolation, network: Network) -> AbstractAsyncContextManager[Machine]:
    """Return a runner that uses the directory of the test."""
    return machine(tmp_path, isolation=isolation, network=network)


@on_every_ground
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 0", Exit(0)),
        ("exit 3", Exit(3)),
        ("exit 137", Exit(137)),
        ("kill -KILL $$", Exit(137, 9)),
        ("kill -TERM $$", Exit(143, 15)),
        ("kill -SEGV $$", Exit(139, 11)),
    ],
)
async def test_exit_status_is_reported_exactly(made: Machine, share: bool, script: str, expected: Exit) -> None:
    end, _ = await made.sh(await made.pod("a", share_process_namespace=share), f"ulimit -c 0; {script}")
    assert end == expected


@on_every_ground
async def test_sigterm_terminates_a_process_without_a_handler(made: Machine, share: bool) -> None:
    program = await made.start(await made.pod("a", share_process_namespace=share), "sleep", "1000")
    assert is_alive(program.pid)
    assert b"sleep" in Path(f"/proc/{program.pid}/cmdline").read_bytes()
    await made.runner.signal(program.id, signal.SIGTERM)
    assert await program.end() == Exit(143, 15)
    await made.runner.signal(program.id, signal.SIGTERM)  # a process that no longer exists is not an error


@on_every_ground
async def test_program_that_ignores_sigterm_is_killed(made: Machine, share: bool) -> None:
    pod = await made.pod("a", share_process_namespace=share)
    program = await made.start(pod, "python3", "-c", IGNORE_TERM)
    assert await program.line() == "ready"
    await made.runner.signal(program.id, signal.SIGTERM, everything=True)
    assert is_alive(program.pid)
    await made.runner.signal(program.id, signal.SIGKILL)
    assert await program.end() == Exit(137, 9)


@on_every_ground
async def test_daemon_stops_with_its_container(made: Machine, share: bool) -> None:
    pod = await made.pod("a", share_process_namespace=share)
    program = await made.start(pod, "python3", "-c", DAEMON)
    assert await program.line() == "daemon"
    end, rest = await program.finish()  # the output is complete, because no process has the pipe open
    assert (end, rest) == (Exit(0), "")


@on_every_ground
async def test_signal_to_everything_reaches_children(made: Machine, share: bool) -> None:
    script = "trap 'echo parent' TERM; sh -c 'trap \"echo child; exit\" TERM; echo up; while :; do sleep 0.01; done' & wait; wait"
    program = await made.start(await made.pod("a", share_process_namespace=share), "sh", "-c", script)
    assert await program.line() == "up"
    await made.runner.signal(program.id, signal.SIGTERM, everything=True)
    lines: set[str] = set()
    while not lines >= {"parent", "child"}:  # the shell also reports the sleep process that was stopped
        lines.add(await program.line())


@on_every_ground
async def test_removing_the_sandbox_ends_all_processes(made: Machine, share: bool) -> None:
    pod = await made.pod("a", share_process_namespace=share)
    programs = [await made.start(pod, "python3", "-c", IGNORE_TERM) for _ in range(3)]
    command = await made.exec(programs[0], "sleep", "1000")
    await made.runner.remove_sandbox(pod)
    assert [await program.end() for program in programs] == [Exit(137, 9)] * 3
    assert (await command.end()).code == 137
    assert eventually(lambda: not any(is_alive(program.pid) for program in (*programs, command)))
    await made.runner.remove_sandbox(pod)  # a process that no longer exists is not an error
    with pytest.raises(StartError, match="no sandbox"):
        await made.start(pod, "true")


@on_every_ground
async def test_zombies_are_reaped(made: Machine, share: bool) -> None:
    program = await made.start(await made.pod("a", share_process_namespace=share), "python3", "-c", ORPHANS)
    assert await program.line() == "made"
    parent = _parent(program.pid)
    assert eventually(lambda: _children(parent) == [program.pid])


@on_every_ground
async def test_command_shares_environment_and_namespaces(made: Machine, isolation: Isolation, share: bool) -> None:
    pod = await made.pod("a", share_process_namespace=share)
    program = await made.start(pod, "sleep", "1000", env={"RANK": "7"}, cwd="/usr")
    command = await made.exec(program, "sh", "-c", "echo $RANK; pwd; hostname; exit 5")
    assert command.pid > 1
    end, output = await command.finish()
    assert end == Exit(5)
    is_named = isolation == "namespaces" or plainnames.find_wrapper() is not None
    hostname = "a" if is_named else os.uname().nodename
    assert output.splitlines() == ["7", "/usr", hostname]


@on_every_ground
async def test_killed_command_is_stopped_with_its_children(made: Machine, share: bool) -> None:
    program = await made.start(await made.pod("a", share_process_namespace=share), "sleep", "1000")
    command = await made.exec(program, "sh", "-c", "sleep 998 & echo up; wait")
    assert await command.line() == "up"
    children = _children(command.pid)
    await made.runner.kill_exec(command.pid)
    assert (await command.finish())[0] == Exit(137, 9)
    assert eventually(lambda: not any(is_alive(pid) for pid in children))
    assert is_alive(program.pid)
    await made.runner.kill_exec(command.pid)  # a process that no longer exists is not an error


@on_every_ground
async def test_command_in_an_ended_container_is_rejected(made: Machine, share: bool) -> None:
    program = await made.start(await made.pod("a", share_process_namespace=share), "true")
    await program.end()
    with pytest.raises(StartError, match="not running"):
        await made.exec(program, "true")


@on_every_ground
async def test_command_controls_its_terminal(made: Machine, share: bool) -> None:
    program = await made.start(await made.pod("a", share_process_namespace=share), "sleep", "1000")
    ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
    terminal, slave = pty.openpty()
    fds = (slave, slave, slave)
    await made.runner.exec(program.id, ("sh", "-c", "echo $TERM; echo to-terminal >/dev/tty"), fds, ended.set_result)
    os.close(slave)
    assert await asyncio.wait_for(ended, 10) == Exit(0)
    assert os.read(terminal, 1000).split() == [b"xterm", b"to-terminal"]
    os.close(terminal)


@on_every_ground
async def test_cluster_process_leaks_no_descriptor(made: Machine, share: bool) -> None:
    before = _descriptors()
    for number in range(5):
        pod = await made.pod(f"pod{number}", share_process_namespace=share)
        program: Program = await made.start(pod, "sleep", "1000")
        (await made.runner.open_socket(pod)).close()
        await made.runner.remove_sandbox(pod)
        await program.finish()
        with pytest.raises(StartError):
            await made.start(pod, "true")
    assert _descriptors() == before


@on_every_ground
async def test_program_has_only_three_descriptors(made: Machine, share: bool) -> None:
    pod = await made.pod("a", share_process_namespace=share)
    program = await made.start(pod, "sleep", "1000")
    listing = "import os; print(*sorted(os.listdir('/proc/self/fd')))"  # descriptor 3 is opened by the listing itself
    for lister in (
        await made.start(pod, "python3", "-c", listing),
        await made.exec(program, "python3", "-c", listing),
    ):
        assert await lister.line() == "0 1 2 3"


def _descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@on_every_ground
@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (("a\0b",), {}),
        (("echo", "a\0b"), {}),
        (("true",), {"cwd": "/a\0b"}),
        (("true",), {"env": {"A": "a\0b"}}),
        (("true",), {"env": {"A\0": "b"}}),
        (("true",), {"env": {"A": "\ud800"}}),
    ],
    ids=["command", "argument", "directory", "value", "variable", "surrogate"],
)
async def test_nul_in_arguments_is_rejected_and_others_continue(
    made: Machine, share: bool, argv: tuple[str, ...], options: dict[str, Any]
) -> None:
    pod = await made.pod("a", share_process_namespace=share)
    other = await made.start(pod, "sleep", "60")
    with pytest.raises(StartError, match=r"null|not found|surrogates"):
        await made.start(pod, *argv, **options)
    assert not other.ended.done()
    assert not made.lost


async def test_failed_sandbox_does_not_terminate_other_pods(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        other = await made.start(await made.pod("a"), "sleep", "60")
        spec = SandboxSpec(id="b\0", hostname="b", directory=tmp_path, hosts_directory=made.hosts)
        with pytest.raises(StartError, match="null"):
            await made.runner.create_sandbox(spec, lambda: None)
        assert not other.ended.done()
        assert not made.lost
