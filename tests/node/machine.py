"""Simulates machines in one PID namespace. Each machine has a network namespace and a mount namespace.

    with machines(directory, ["node1", "node2"]) as (one, two): one.run("ip", "address"); one.start("kubelet", [...])

Nothing of the real machine changes: not its mounts, links, routes, firewall or sysctls. The end of the PID namespace ends
all processes. Only cgroups are created in the machine's hierarchies, below one folder for each run, which `sweep` removes
if the run has ended.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane.process import PR_SET_PDEATHSIG, StartError
from tests.node.prerequisites import SBIN

LAN: Final = "lan"
"""The name of the link between two machines."""

ADDRESSES: Final = "172.30.0"
PODS: Final = "10.244"
START_SECONDS: Final = 60.0
REAPER: Final = """
import os, signal, sys
signal.signal(signal.SIGCHLD, lambda *_: None)
print("ready", flush=True)
while True:
    try:
        os.wait()
    except ChildProcessError:
        signal.pause()
"""
"""The init process of the PID namespace. It reaps orphans, and the kernel kills all other processes when it exits."""

SYSCTLS: Final = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""Kernel settings that a kubelet applies to the whole machine, as files with these values."""

STARTED: "Final[list[subprocess.Popen[bytes]]]" = []
"""Processes that this process started on machines. References prevent Python warnings about running processes."""

MOUNTS: Final = """set -eu
mount --make-rshared /
for folder in /var/lib /var/log /run; do mount -t tmpfs tmpfs $folder; done
mkdir -p /run/lock /run/netns /var/lib/kubelet /var/log/pods
mount -t tmpfs tmpfs /run/netns
mount --make-rshared /run/netns
mount --bind "$STATE/kubelet" /var/lib/kubelet
for file in $SYSCTLS; do mount --bind "$STATE/sysctls/$file" "/proc/sys/$file"; done
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
echo ready
exec sleep infinity
"""
"""The directories to which processes on a machine write instead of the real directories."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A network namespace and a mount namespace, which a process keeps open."""

    name: str
    number: int
    directory: Path
    holder: int
    cgroup: str

    @property
    def address(self) -> str:
        """Return the address at which the other machine can reach this machine."""
        return f"{ADDRESSES}.{self.number}"

    @property
    def pods(self) -> str:
        """Return the address range of pods."""
        return f"{PODS}.{self.number}.0/24"

    @property
    def inside(self) -> list[str]:
        """Return the command prefix that runs a command on the machine."""
        return ["nsenter", f"--target={self.holder}", "--pid", "--mount", "--net", "--"]

    @property
    def network(self) -> list[str]:
        """Return the command prefix that uses the network of the machine and the files of the real machine."""
        return ["nsenter", f"--net=/proc/{self.holder}/ns/net", "--"]

    def run(self, *words: str) -> str:
        """Run a command on the machine until it exits. Return its output."""
        done = subprocess.run(
            [*self.inside, *words], env=environment(self.directory), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise StartError(f"{self.name}: {' '.join(words)} failed:\n{done.stderr[-2000:]}")
        return done.stdout

    def start(self, name: str, words: Sequence[str]) -> None:
        """Start a process on the machine. Its log and its PID are in the directory of the machine."""
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self.inside, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=environment(self.directory),
                start_new_session=True,
            )
        STARTED.append(process)
        (self.directory / f"{name}.pid").write_text(str(child_of(process)))

    def log(self, name: str) -> str:
        """Return the end of the log of a process."""
        return (self.directory / f"{name}.log").read_text(errors="replace")[-3000:]

    def check(self) -> None:
        """Fail if a process has exited."""
        for file in self.directory.glob("*.pid"):
            if not is_alive(int(file.read_text())):
                raise StartError(f"{self.name}: {file.stem} ended:\n{self.log(file.stem)}")

    def kill(self, name: str) -> None:
        """Kill a process, and wait until it has exited."""
        file = self.directory / f"{name}.pid"
        process = int(file.read_text())
        file.unlink()
        os.kill(process, signal.SIGKILL)
        await_end(process)


@contextmanager
def machines(directory: Path, names: Sequence[str], cgroup: str) -> Iterator[list[Machine]]:
    """Run machines until the context exits. Their processes exit with the context or with this process."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation=private", "--mount-proc"]
    first = spawn([*unshare, sys.executable, "-c", REAPER], directory)
    await_line(first, "ready")
    reaper = child_of(first)
    try:
        found = [hold(directory, name, number, reaper, cgroup) for number, name in enumerate(names, start=1)]
        connect(*found)
        yield found
    finally:
        os.kill(reaper, signal.SIGKILL)
        first.wait(START_SECONDS)


def hold(directory: Path, name: str, number: int, reaper: int, cgroup: str) -> Machine:
    """Start the process that owns the namespaces of a machine."""
    own = directory / name
    for folder in ("kubelet", "containerd", "network", "sysctls"):
        (own / folder).mkdir(parents=True)
    for file, value in SYSCTLS.items():
        (own / "sysctls" / file).parent.mkdir(parents=True, exist_ok=True)
        (own / "sysctls" / file).write_text(f"{value}\n")
    enter = ["nsenter", f"--target={reaper}", "--pid", "--mount", "--"]
    settings = ["env", f"STATE={own}", f"SYSCTLS={' '.join(SYSCTLS)}"]
    unshare = ["unshare", "--net", "--mount", "--propagation=private"]
    process = spawn([*enter, *settings, *unshare, "bash", "-c", MOUNTS], own)
    await_line(process, "ready")
    STARTED.append(process)
    return Machine(name, number, own, child_of(process), cgroup)


def connect(one: Machine, two: Machine) -> None:
    """Connect two machines. Add routes to the pods on the other machine."""
    subprocess.run(
        [*one.network, "ip", "link", "add", LAN, "type", "veth", "peer", "name", LAN, "netns", str(two.holder)],
        env=environment(one.directory),
        check=True,
    )
    for own in (one, two):
        own.run("ip", "address", "add", f"{own.address}/24", "dev", LAN)
        own.run("ip", "link", "set", LAN, "up")
    for own, other in ((one, two), (two, one)):
        own.run("ip", "route", "add", "default", "via", other.address)
        own.run("ip", "route", "add", other.pods, "via", other.address)


def spawn(words: Sequence[str], directory: Path) -> "subprocess.Popen[bytes]":
    """Start a process that is killed when the starting thread exits. The caller reads its output."""
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=environment(directory),
        preexec_fn=ends_with_parent(signal.SIGKILL),  # noqa: PLW1509 - one call, no locks
    )


def ends_with_parent(end: signal.Signals) -> Callable[[], None]:
    """Return a function that a new process calls first. It requests a signal when the starting thread exits."""
    library = ctypes.CDLL(None)
    return lambda: library.prctl(PR_SET_PDEATHSIG, end)


def environment(home: Path) -> dict[str, str]:
    """Return the environment for processes on a machine."""
    return {"HOME": str(home), "PATH": f"{os.environ['PATH']}:{SBIN}", "GOGC": "200"}


def await_line(process: "subprocess.Popen[bytes]", wanted: str) -> None:
    """Wait until a process has printed its only line."""
    assert process.stdout is not None
    printed = process.stdout.readline().decode()
    if printed.strip() != wanted:
        rest = process.communicate(timeout=START_SECONDS)[0].decode(errors="replace")
        raise StartError(f"{process.args!r} printed:\n{printed}{rest}")
    process.stdout.close()


def child_of(process: "subprocess.Popen[bytes]") -> int:
    """Return the process that `unshare` or `nsenter` started in a different PID namespace."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if children := children_of(process.pid):
            return children[0]
        time.sleep(0.01)
    raise StartError(f"{process.args!r} started no process")


def children_of(process: int) -> list[int]:
    """Return the PIDs of the child processes."""
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_alive(process: int) -> bool:
    """Return whether a process is running. Zombies are not running."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_end(process: int) -> None:
    """Wait until a process has exited."""
    deadline = time.monotonic() + START_SECONDS
    while is_alive(process):
        if time.monotonic() > deadline:
            raise StartError(f"process {process} does not end")
        time.sleep(0.02)
