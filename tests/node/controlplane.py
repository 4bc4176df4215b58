"""Runs etcd, the API server, the controller manager and the scheduler on the first machine."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tests.controlplane.process import START_SECONDS, StartError, write_service_account_key
from tests.node.machine import Machine, environment
from tests.node.pki import BUNDLE, Authority

SERVICES: Final = "10.96.0.0/16"
API_SERVICE: Final = "10.96.0.1"
PORT: Final = 6443
ETCD: Final = "http://127.0.0.1:2379"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
API_NAMES: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", ISSUER.removeprefix("https://"))
CLIENTS: Final = {
    "admin": ("admin", ["system:masters"]),
    "kube-controller-manager": ("system:kube-controller-manager", []),
    "kube-scheduler": ("system:kube-scheduler", []),
    "kube-proxy": ("system:kube-proxy", []),
}
"""The key files, with the user and the groups of each file."""

AGGREGATOR: Final = "front-proxy"
"""The user name that the API server uses to call other API servers, such as metrics-server."""

Flags: TypeAlias = Mapping[str, Sequence[str]]
"""Additional flags by component name."""

NONE: Final[Flags] = {}
SERVER: Final = "kube-apiserver"

NODE_GRACE: Final = "12s"
"""The time after which the controller manager marks an unresponsive node as unknown."""


def issue(authority: Authority, nodes: Sequence[Machine]) -> None:
    """Write the keys, certificates and kubeconfigs of all API server clients."""
    host = nodes[0].address
    server = f"https://{host}:{PORT}"
    authority.issue("kube-apiserver", "kube-apiserver", hosts=[*API_NAMES, host, API_SERVICE, "127.0.0.1"])
    authority.issue("apiserver-kubelet", "apiserver-kubelet", ["system:masters"])
    authority.issue(AGGREGATOR, AGGREGATOR)
    for name, (user, groups) in CLIENTS.items():
        authority.issue(name, user, groups)
        authority.kubeconfig(name, server)
    for node in nodes:
        authority.issue(node.name, f"system:node:{node.name}", ["system:nodes"], [node.name, node.address])
        authority.kubeconfig(node.name, server)
    write_service_account_key(authority.directory)


def start(machine: Machine, assets: Path, pki: Path) -> None:
    """Start the control plane, and wait until the API server is ready."""
    directory = machine.directory
    etcd = ["--data-dir", str(directory / "etcd"), f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}"]
    machine.start("etcd", [str(assets / "etcd"), *etcd, "--unsafe-no-fsync", "--log-level=warn"])
    serve(machine, assets, pki)


def restart(machine: Machine, assets: Path, pki: Path, further: Flags = NONE) -> None:
    """Restart all components except etcd with additional flags, and wait until the API server is ready."""
    for name in (SERVER, *controllers(pki)):
        machine.kill(name)
    serve(machine, assets, pki, further)


def serve(machine: Machine, assets: Path, pki: Path, further: Flags = NONE) -> None:
    """Start the API server, wait until it is ready, and start the controllers."""
    machine.start(SERVER, [str(assets / SERVER), *api_server_flags(machine, pki), *further.get(SERVER, ())])
    await_ready(machine, assets, pki)
    for name, flags in controllers(pki).items():
        machine.start(name, [str(assets / name), *client_flags(name, pki), *flags, *further.get(name, ())])


def api_server_flags(machine: Machine, pki: Path) -> list[str]:
    """Return the flags of the API server."""
    return [
        f"--etcd-servers={ETCD}",
        f"--secure-port={PORT}",
        f"--bind-address={machine.address}",
        f"--advertise-address={machine.address}",
        f"--cert-dir={pki}",
        f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
        f"--client-ca-file={pki / BUNDLE}",
        f"--kubelet-client-certificate={pki / 'apiserver-kubelet.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-kubelet.key'}",
        f"--kubelet-certificate-authority={pki / BUNDLE}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--proxy-client-cert-file={pki / AGGREGATOR}.crt",
        f"--proxy-client-key-file={pki / AGGREGATOR}.key",
        f"--requestheader-client-ca-file={pki / BUNDLE}",
        f"--requestheader-allowed-names={AGGREGATOR}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--authorization-mode=Node,RBAC",
        "--permit-port-sharing",  # a killed API server can still occupy the port briefly
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={SERVICES}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={pki / 'service-account.key'}",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
    ]


def client_flags(name: str, pki: Path) -> list[str]:
    """Return the flags with which a controller connects to the API server."""
    kubeconfig = pki / f"{name}.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
    ]


def controllers(pki: Path) -> dict[str, list[str]]:
    """Return the other control plane components with their flags."""
    return {
        "kube-controller-manager": [
            f"--root-ca-file={pki / BUNDLE}",
            f"--service-account-private-key-file={pki / 'service-account.key'}",
            "--use-service-account-credentials",
            f"--node-monitor-grace-period={NODE_GRACE}",
            "--node-monitor-period=2s",
            "--horizontal-pod-autoscaler-sync-period=5s",
            "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
            "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
        ],
        "kube-scheduler": [],
    }


def await_ready(machine: Machine, assets: Path, pki: Path) -> None:
    """Wait until the API server reports that it is ready."""
    kubectl = [str(assets / "kubectl"), f"--kubeconfig={pki / 'admin.kubeconfig'}"]
    deadline = time.monotonic() + START_SECONDS
    while True:
        done = subprocess.run(
            [*machine.network, *kubectl, "get", "--raw=/readyz"],
            env=environment(machine.directory),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stdout == "ok":
            return
        machine.check()
        if time.monotonic() > deadline:
            raise StartError(f"kube-apiserver is not ready: {done.stderr}\n{machine.log('kube-apiserver')}")
        time.sleep(0.2)
