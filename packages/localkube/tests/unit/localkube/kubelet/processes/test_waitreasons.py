"""Tests the wait channels of real processes in /proc."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testkit.waiting import until

from localkube.kubelet.processes import processtree, waitreasons
from localkube.kubelet.processes.waitreasons import WaitReason

pytestmark = pytest.mark.slow

LOCK = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"
SLEEP = "import time; time.sleep(100)"
BUSY = "while True: pass"
PIPE = "import os; os.read(os.pipe()[0], 1)"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"
ACCEPT = "import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()"
FLOCK = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX)"
READ = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)"
POLL = """
import select, socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
poll = select.poll()
poll.register(peer, 0)
poll.poll()
"""


@contextmanager
def running(program: str, *words: str) -> Iterator[int]:
    """Run a process that waits, and yield its PID."""
    process = subprocess.Popen([sys.executable, "-c", program, *words])
    try:
        yield process.pid
    finally:
        for pid in [process.pid, *processtree.descendants([process.pid], processtree.read())]:
            os.kill(pid, signal.SIGKILL)
        process.wait()


def becomes(pid: int, expected: str, peer: str = "") -> None:
    until(
        lambda: waitreasons.wait_reason([pid]) == WaitReason(expected, peer),
        f"{expected}, not {waitreasons.wait_reason([pid])}",
        20,
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (LOCK, "a lock (futex)"),
        (SLEEP, "a timer (sleep)"),
        (BUSY, "nothing, because it uses the CPU"),
        (PIPE, "a pipe"),
        (CHILD, "a timer (sleep)"),
    ],
)
def test_wait_of_a_program_is_described(program: str, expected: str) -> None:
    with running(program) as pid:
        becomes(pid, expected)


def test_stopped_program_waits_for_sigcont() -> None:
    with running(SLEEP) as pid:
        os.kill(pid, signal.SIGSTOP)
        becomes(pid, "SIGCONT, because it is stopped")


def test_locked_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with running(FLOCK + "; import time; time.sleep(100)", str(path)) as first:
        becomes(first, "a timer (sleep)")
        with running(FLOCK, str(path)) as pid:
            becomes(pid, f"a file lock ({path})")


def test_peer_of_a_socket_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with running(READ, str(port)) as pid:
            connection, _ = server.accept()
            with connection:
                becomes(pid, "data or buffer space on a socket,", f"127.0.0.1:{port}")
        with running(POLL, str(port)) as pid:
            connection, _ = server.accept()
            with connection:
                becomes(pid, "data or buffer space on a socket,", f"127.0.0.1:{port}")
            becomes(pid, "a socket that the peer has closed,", f"127.0.0.1:{port}")


def test_accepting_program_waits_for_a_connection() -> None:
    with running(ACCEPT) as pid:
        found = until_known(pid)
    assert found.description.startswith("a connection to its port ")


def until_known(pid: int) -> WaitReason:
    until(lambda: str(waitreasons.wait_reason([pid])).find("its port") > 0, "a program that listens", 20)
    found = waitreasons.wait_reason([pid])
    assert found is not None
    return found


def test_exited_processes_have_no_wait_reason() -> None:
    with running(SLEEP) as pid:
        pass
    assert waitreasons.wait_reason([pid]) is None
    assert waitreasons.wait_reason([]) is None


def test_addresses_of_both_families_are_parsed() -> None:
    if sys.byteorder == "little":
        assert waitreasons._address("00000000000000000000000001000000:0050") == "[::1]:80"
        assert waitreasons._address("0000000000000000FFFF00000100007F:0050") == "127.0.0.1:80"
