"""Runs containerd, kubelet and kube-proxy on each machine."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.controlplane.process import START_SECONDS, StartError
from tests.node import registry
from tests.node.controlplane import SERVICES
from tests.node.machine import PODS, Machine

NAME_SERVER: Final = SERVICES.replace("0.0/16", "0.10")
PAUSE: Final = "localhost/pause:1"
SOCKET: Final = "/run/containerd/containerd.sock"
PROCESSES: Final = 300
"""The maximum number of processes and threads in a pod."""

PLUGINS: Final = "/usr/lib/cni"
RUNC: Final = "/usr/sbin/runc"
CONTAINERD: Final = """version = 3
root = "{root}"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.nri.v1.nri",
  "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
address = "{socket}"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{pause}"
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "{registries}"
[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
# Without CAP_SYS_RESOURCE no process may get a lower score than the daemon has.
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{plugins}"]
conf_dir = "{network}"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"""


def start_containerd(machine: Machine, assets: Path) -> None:
    """Start containerd, and wait until it responds."""
    (machine.directory / "network" / "10-pods.conflist").write_text(json.dumps(network(machine)))
    settings = machine.directory / "containerd.toml"
    settings.write_text(
        CONTAINERD.format(
            root=machine.directory / "containerd",
            socket=SOCKET,
            pause=PAUSE,
            plugins=PLUGINS,
            network=machine.directory / "network",
            registries=registries(machine),
            runc=RUNC,
        )
    )
    path = ["env", f"PATH={assets}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    machine.start("containerd", [*path, str(assets / "containerd"), "--config", str(settings)])
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            machine.run(str(assets / "ctr"), "version")
        except StartError:
            machine.check()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def registries(machine: Machine) -> Path:
    """Configure containerd to use the machine's registry without TLS. Return the directory."""
    folder = machine.directory / "registries"
    (folder / registry.ADDRESS).mkdir(parents=True, exist_ok=True)
    (folder / registry.ADDRESS / "hosts.toml").write_text(f'server = "http://{registry.ADDRESS}"\n')
    return folder


def load(machine: Machine, assets: Path, archives: Iterable[Path]) -> None:
    """Load the images in these archives into containerd."""
    for archive in archives:
        machine.run(str(assets / "ctr"), "--namespace=k8s.io", "images", "import", str(archive))


def start_kubelet(machine: Machine, assets: Path, pki: Path, **changed: object) -> None:
    """Start the kubelet, which registers the node. Some settings can be changed."""
    settings = machine.directory / "kubelet.json"
    settings.write_text(json.dumps({**kubelet_settings(machine, pki), **changed}))
    machine.start(
        "kubelet",
        [
            str(assets / "kubelet"),
            f"--config={settings}",
            f"--kubeconfig={pki / machine.name}.kubeconfig",
            f"--hostname-override={machine.name}",
            f"--node-ip={machine.address}",
            f"--node-labels=rack=rack-{machine.number}",
        ],
    )


def start_proxy(machine: Machine, assets: Path, pki: Path) -> None:
    """Start kube-proxy."""
    settings = machine.directory / "kube-proxy.json"
    settings.write_text(json.dumps(proxy_settings(machine, pki)))
    machine.start("kube-proxy", [str(assets / "kube-proxy"), f"--config={settings}"])


def network(machine: Machine) -> dict[str, object]:
    """Return the configuration of the pod network, which links each pod to its node."""
    addresses = {"type": "host-local", "ranges": [[{"subnet": machine.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    plugins = [
        {"type": "ptp", "ipam": addresses},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}


def kubelet_settings(machine: Machine, pki: Path) -> dict[str, object]:
    """Return the configuration of the kubelet."""
    (machine.directory / "resolv.conf").write_text("")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{machine.cgroup}/{machine.name}",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "volumePluginDir": str(machine.directory / "volumeplugins"),
        "clusterDNS": [NAME_SERVER],
        "clusterDomain": "cluster.local",
        "resolvConf": str(machine.directory / "resolv.conf"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / f"{machine.name}.crt"),
        "tlsPrivateKeyFile": str(pki / f"{machine.name}.key"),
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "maxPods": 250,
        "podPidsLimit": PROCESSES,
        "nodeStatusUpdateFrequency": "4s",
        "nodeLeaseDurationSeconds": 8,
    }


def proxy_settings(machine: Machine, pki: Path) -> dict[str, object]:
    """Return the configuration of kube-proxy, which does not change connection tracking sysctls."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": f"{PODS}.0.0/16",
        "hostnameOverride": machine.name,
        "clientConnection": {"kubeconfig": str(pki / "kube-proxy.kubeconfig")},
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpCloseWaitTimeout": "0s",
            "tcpEstablishedTimeout": "0s",
        },
        "nftables": {"minSyncPeriod": "100ms"},
    }
