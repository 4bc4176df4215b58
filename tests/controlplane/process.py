"""Runs a control plane on the loopback address.

It consists of etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

    with control_plane(assets(say), directory) as plane: plane.server, plane.token, plane.kubeconfig

All processes are children of this one and die with it. Their logs are in the directory.
"""

import base64
import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from .etcd_members import Member, flags_of, members_at

LOOPBACK = "127.0.0.1"
COLLECT_AT = "300"
"""The heap growth in percent that triggers Go garbage collection. Higher values save CPU time and use memory."""

PORTS = range(12_000, 30_000)
RESERVED: list[socket.socket] = []
"""The sockets that keep the ports of `free_ports` bound."""
START_SECONDS = 180.0
STOP_SECONDS = 10.0
KWOK_STAGES = Path(__file__).parent / "stages.yaml"
PR_SET_PDEATHSIG = 1


class StartError(Exception):
    """A control plane component did not start. The message contains the end of its log."""


@dataclass(frozen=True, slots=True)
class Plane:
    """A running control plane."""

    directory: Path
    assets: Path
    server: str
    token: str
    authority: Path
    processes: dict[str, "subprocess.Popen[bytes]"]
    members: tuple[Member, ...]

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.directory / "kubeconfig"

    def log(self, name: str) -> str:
        """Return the end of the log of a process."""
        return (self.directory / f"{name}.log").read_text(errors="replace")[-3000:]


@contextmanager
def control_plane(
    assets: Path,
    directory: Path,
    prepare: Callable[[Plane], None] | None = None,
    flags: Sequence[str] = (),
    members: int = 1,
    gates: str = "",
) -> Iterator[Plane]:
    """Run a control plane until the context exits, with additional API server flags and several etcd members.

    `gates` are feature gates of all its parts, as `--feature-gates` has them.
    `prepare` is called when the API server answers and nothing else runs: kinds that are defined then are known to the
    garbage collector from its start. It looks for others every 30 seconds, and collects nothing of theirs until then.
    """
    common = [f"--feature-gates={gates}"] if gates else []
    with api_server(assets, directory, [*flags, *common], members) as plane:
        if prepare is not None:
            prepare(plane)
            await_discovery(plane)
        start(plane, "kube-controller-manager", [*controller_manager_flags(plane), *common])
        start(plane, "kube-scheduler", [*client_flags(plane, "kube-scheduler"), *common])
        start(plane, "kwok", kwok_flags(plane))
        yield plane


@contextmanager
def api_server(assets: Path, directory: Path, flags: Sequence[str] = (), members: int = 1) -> Iterator[Plane]:
    """Run etcd and the API server. All other started processes are stopped with them."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    port, *others = free_ports(1 + 2 * members)
    token = secrets.token_urlsafe(24)
    authority = directory / "pki" / "apiserver.crt"
    write_service_account_key(directory)
    (directory / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
    plane = Plane(directory, assets, f"https://{LOOPBACK}:{port}", token, authority, processes, members_at(others))
    try:
        for member in plane.members:
            start(plane, member.name, flags_of(member, plane.members, directory), program="etcd")
        start(plane, "kube-apiserver", [*apiserver_flags(plane, port), *flags])
        await_ready(plane)
        write_kubeconfig(plane)
        yield plane
    finally:
        for process in reversed(processes.values()):
            stop(process)


def apiserver_flags(plane: Plane, port: int) -> list[str]:
    """Return the flags of the API server, which creates its own certificate in `pki`."""
    directory = plane.directory
    return [
        f"--etcd-servers={','.join(member.client for member in plane.members)}",
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--cert-dir={plane.authority.parent}",
        f"--token-auth-file={directory / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={directory / 'service-account.key'}",
        f"--service-account-signing-key-file={directory / 'service-account.key'}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--endpoint-reconciler-type=none",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1000",
    ]


def client_flags(plane: Plane, name: str) -> list[str]:
    """Return the flags with which a controller connects to the API server."""
    return [
        f"--kubeconfig={plane.kubeconfig}",
        f"--authentication-kubeconfig={plane.kubeconfig}",
        f"--authorization-kubeconfig={plane.kubeconfig}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        f"--bind-address={LOOPBACK}",
        "--secure-port=0",
        f"--cert-dir={plane.directory / name}",
    ]


def controller_manager_flags(plane: Plane) -> list[str]:
    """Return the flags of the controller manager.

    With its default of 20 requests a second, or of a look at nodes every five seconds, tests would wait for it.
    """
    return [
        *client_flags(plane, "kube-controller-manager"),
        "--controllers=*,-nodeipam",
        f"--service-account-private-key-file={plane.directory / 'service-account.key'}",
        f"--root-ca-file={plane.authority}",
        "--concurrent-statefulset-syncs=20",
        "--concurrent-gc-syncs=40",
        "--node-monitor-period=1s",
        "--node-monitor-grace-period=600s",  # kwok renews the leases of nodes late if the machine is busy
        "--horizontal-pod-autoscaler-sync-period=1s",
    ]


def kwok_flags(plane: Plane) -> list[str]:
    """Return the flags of kwok, which simulates nodes with the stages in this directory."""
    return [
        f"--kubeconfig={plane.kubeconfig}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=80",
        f"--config={KWOK_STAGES}",
        "--server-address=",
    ]


def start(plane: Plane, name: str, flags: Sequence[str], *, program: str = "") -> None:
    """Start a process, by default with this name. The process is killed when the starting thread exits."""
    library = ctypes.CDLL(None)
    with (plane.directory / f"{name}.log").open("ab") as log:
        plane.processes[name] = subprocess.Popen(
            [str(plane.assets / (program or name)), *flags],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=plane.directory,
            env={"HOME": str(plane.directory), "PATH": os.environ["PATH"], "GOGC": COLLECT_AT},
            preexec_fn=lambda: library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 - one call, no locks
        )


def kill(plane: Plane, name: str) -> None:
    """Kill a process."""
    plane.processes[name].kill()
    plane.processes[name].wait()


def start_again(plane: Plane, name: str, *, without: str | None = None) -> None:
    """Restart a process that has exited with its original command line, but without this flag."""
    program, *flags = cast("list[str]", plane.processes[name].args)
    kept = [flag for flag in flags if without is None or not flag.startswith(f"{without}=")]
    start(plane, name, kept, program=Path(program).name)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop a process. Send SIGKILL if it does not exit."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def await_ready(plane: Plane) -> None:
    """Wait until the API server is ready. If the process exits first, the error contains its log."""
    deadline = time.monotonic() + START_SECONDS
    while not is_ready(plane):
        for name, process in plane.processes.items():
            if process.poll() is not None:
                raise StartError(f"{name} ended with {process.returncode}:\n{plane.log(name)}")
        if time.monotonic() > deadline:
            raise StartError(f"kube-apiserver is not ready after {START_SECONDS:.0f} s:\n{plane.log('kube-apiserver')}")
        time.sleep(0.1)


def is_ready(plane: Plane) -> bool:
    """Send a request to /readyz."""
    with contextlib.suppress(OSError):
        return plane.authority.exists() and get(plane, "/readyz") == b"ok"
    return False


def await_discovery(plane: Plane) -> None:
    """Wait until all CRDs appear in API discovery.

    The garbage collector discovers them at its start, and then after 30 seconds.
    """
    defined = json.loads(get(plane, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"))["items"]
    wanted = {one["metadata"]["name"] for one in defined}
    deadline = time.monotonic() + START_SECONDS
    while missing := wanted - discovered(plane):
        if time.monotonic() > deadline:
            raise StartError(f"not discovered after {START_SECONDS:.0f} s: {missing}")
        time.sleep(0.1)


def discovered(plane: Plane) -> set[str]:
    """Return the kinds in API discovery, as `plural.group`."""
    groups = json.loads(get(plane, "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"))
    return {
        f"{resource['resource']}.{group['metadata']['name']}"
        for group in groups["items"]
        for version in group["versions"]
        for resource in version["resources"]
    }


def get(plane: Plane, path: str, accept: str = "*/*", *, seconds: float = 2) -> bytes:
    """Return the API server's response to a request by the administrator, within `limit` seconds."""
    headers = {"Authorization": f"Bearer {plane.token}", "Accept": accept}
    context = ssl.create_default_context(cafile=str(plane.authority))
    answer = urllib.request.urlopen(
        urllib.request.Request(f"{plane.server}{path}", headers=headers), None, seconds, context=context
    )
    return cast("bytes", answer.read())


def write_kubeconfig(plane: Plane) -> None:
    """Write the administrator's kubeconfig as JSON, which is valid YAML."""
    authority = base64.b64encode(plane.authority.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": plane.server, "certificate-authority-data": authority}}],
        "users": [{"name": "admin", "user": {"token": plane.token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    plane.kubeconfig.write_text(json.dumps(content))
    plane.kubeconfig.chmod(0o600)


def write_service_account_key(directory: Path) -> None:
    """Write the key that signs service account tokens."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (directory / "service-account.key").write_bytes(pem)


def free_ports(count: int) -> list[int]:
    """Return unused ports below the range for outgoing connections, so that no connection uses them.

    Each port remains bound until this process exits, because other processes search for ports at the same time. The
    socket permits a listener that sets SO_REUSEADDR, as Go and asyncio do, and rejects the bind without it below.
    """
    ports: list[int] = []
    while len(ports) < count:
        reserved = socket.socket()
        try:
            reserved.bind((LOOPBACK, port := secrets.choice(PORTS)))
        except OSError:
            reserved.close()
        else:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            RESERVED.append(reserved)
            ports.append(port)
    return ports
