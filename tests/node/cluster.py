"""Runs a Kubernetes cluster with two nodes and real kubelets on this machine.

with cluster(say) as found: found.kubectl("get", "nodes")
"""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane import build
from tests.controlplane.build import Say
from tests.controlplane.process import START_SECONDS, StartError
from tests.node import cgroups, controlplane, daemons, images, prerequisites, programs
from tests.node.api import Api
from tests.node.machine import Machine, environment, machines
from tests.node.pki import Authority, make_authority

NODES: Final = ("node1", "node2")
MANIFESTS: Final = Path(__file__).parent / "manifests"
STATE: Final = "cluster.json"
SOCKET: Final = "api.socket"
LOCK: Final = "lock"
PREFIX: Final = "lws-node-"
SWEEP: Final = "import sys; from tests.node import cluster; sys.stdin.read(); cluster.sweep()"
"""A process that removes a run after its parent was killed, which closes its standard input."""


@dataclass(frozen=True, slots=True)
class NodeCluster:
    """A running cluster that this process or another process started."""

    directory: Path
    assets: Path
    node_assets: Path
    machines: tuple[Machine, ...]

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.pki / "admin.kubeconfig"

    @property
    def pki(self) -> Path:
        """Return the directory with keys, certificates and kubeconfigs."""
        return self.directory / "pki"

    @property
    def api(self) -> Api:
        """Return the API server."""
        return Api(self.directory / SOCKET)

    @property
    def inside(self) -> list[str]:
        """Return the command prefix for commands that access the API server."""
        return self.machines[0].network

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment for commands that use the cluster."""
        own = environment(self.directory / "home")
        own["PATH"] = f"{self.assets}:{own['PATH']}"
        return own | {"KUBECONFIG": str(self.kubeconfig), "XDG_STATE_HOME": str(self.directory / "state")}

    def kubectl(self, *words: str, text: str | None = None) -> str:
        """Run kubectl until it exits. Return its output."""
        done = subprocess.run(
            [*self.inside, "kubectl", *words],
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StartError(f"kubectl {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def check(self) -> None:
        """Fail if a process on a node has exited."""
        for machine in self.machines:
            machine.check()

    def save(self) -> None:
        """Write the file that `attach` reads."""
        holders = {machine.name: machine.holder for machine in self.machines}
        content = {"assets": str(self.assets), "node_assets": str(self.node_assets), "holders": holders}
        (self.directory / STATE).write_text(json.dumps(content))


def attach(directory: Path) -> NodeCluster:
    """Return a cluster that another process runs."""
    content = json.loads((directory / STATE).read_text())
    found = tuple(
        Machine(name, number, directory / name, holder, directory.name)
        for number, (name, holder) in enumerate(content["holders"].items(), start=1)
    )
    return NodeCluster(directory, Path(content["assets"]), Path(content["node_assets"]), found)


@contextmanager
def cluster(say: Say) -> Iterator[NodeCluster]:
    """Run a cluster until the context or this process exits.

    Raise AbsentError if this machine lacks a requirement of nodes.
    """
    prerequisites.install_packages(runs(), say)
    prerequisites.try_namespaces(runs())
    assets, node_assets = build.assets(say, build.DEFAULT), programs.assets(say)
    archives = images.archives(node_assets, say)
    with run_directory() as directory:
        authority = make_authority(directory / "pki")
        (directory / "home").mkdir()
        with machines(directory, NODES, directory.name) as found:
            running = NodeCluster(directory, assets, node_assets, tuple(found))
            start(running, authority, archives)
            yield running


@contextmanager
def run_directory() -> Iterator[Path]:
    """Create the directory and the cgroups of a run. Remove both afterwards, even if this process is killed."""
    sweep()
    directory = runs() / f"{PREFIX}{secrets.token_hex(4)}"
    directory.mkdir(parents=True)
    sweeper = subprocess.Popen([sys.executable, "-c", SWEEP], stdin=subprocess.PIPE, start_new_session=True)
    with sweeper, (directory / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cgroups.make(directory.name, NODES)
        try:
            yield directory
        finally:
            keep_logs(directory)
            remove(directory)


def sweep() -> None:
    """Remove the files and cgroups of runs whose process was killed."""
    for directory in runs().glob(f"{PREFIX}*"):
        # Another process might be deleting the directory. In this case, it no longer exists or is locked.
        with suppress(FileNotFoundError, BlockingIOError), (directory / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(directory)


def remove(directory: Path) -> None:
    """Remove the cgroups and the directory of a run. The kernel may need some time to stop the last processes."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            cgroups.remove(directory.name)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            break
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    # The lock is deleted last. Two processes might otherwise delete a directory without a lock at the same time.
    shutil.rmtree(directory, ignore_errors=True)


def keep_logs(directory: Path) -> None:
    """Copy the logs of a run to the directory in an environment variable."""
    if target := os.environ.get("LWS_NODE_LOGS"):
        for file in directory.rglob("*.log"):
            if file.parent.name in NODES:
                (Path(target) / file.parent.name).mkdir(parents=True, exist_ok=True)
                shutil.copy(file, Path(target) / file.parent.name / file.name)


def runs() -> Path:
    """Return the directory that contains a directory for each run."""
    return build.cache().parent / "node"


def start(running: NodeCluster, authority: Authority, archives: list[Path]) -> None:
    """Start all cluster components, and wait until both nodes and the DNS server are ready."""
    controlplane.issue(authority, running.machines)
    with ThreadPoolExecutor() as pool:
        containers = [
            pool.submit(start_containers, machine, running.node_assets, archives) for machine in running.machines
        ]
        controlplane.start(running.machines[0], running.assets, authority.directory)
        for one in containers:
            one.result()
    for machine in running.machines:
        daemons.start_kubelet(machine, running.node_assets, authority.directory)
        daemons.start_proxy(machine, running.node_assets, authority.directory)
    start_proxy(running)
    running.kubectl("apply", "--filename", str(MANIFESTS / "cluster.yaml"))
    await_nodes(running)
    running.kubectl("rollout", "status", "--namespace=kube-system", "deployment/coredns", f"--timeout={START_SECONDS}s")
    running.check()
    running.save()


def start_containers(machine: Machine, assets: Path, archives: list[Path]) -> None:
    """Start containerd, and load images into it."""
    daemons.start_containerd(machine, assets)
    daemons.load(machine, assets, archives)


def start_proxy(running: NodeCluster) -> None:
    """Provide a socket through which processes on this machine access the API server."""
    kubeconfig, path = f"--kubeconfig={running.kubeconfig}", f"--unix-socket={running.directory / SOCKET}"
    running.machines[0].start("kubectl-proxy", [str(running.assets / "kubectl"), kubeconfig, "proxy", path])


def await_nodes(running: NodeCluster) -> None:
    """Wait until the nodes are ready."""
    deadline = time.monotonic() + START_SECONDS
    while not set(NODES) <= set(running.kubectl("get", "nodes", "--output=jsonpath={.items[*].metadata.name}").split()):
        running.check()
        if time.monotonic() > deadline:
            raise StartError(f"no node: {running.machines[0].log('kubelet')}")
        time.sleep(0.2)
    running.kubectl("wait", "--for=condition=Ready", *(f"node/{name}" for name in NODES), f"--timeout={START_SECONDS}s")
