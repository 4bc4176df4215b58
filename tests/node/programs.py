"""Builds kubelet, kube-proxy, containerd and CoreDNS once for each version of their Go modules.

    python -m tests.node.programs

Out: a directory with the programs, next to those of the control plane.
"""

import sys
from pathlib import Path
from typing import Final

from tests.controlplane import build
from tests.controlplane.build import Module, Say

HERE: Final = Path(__file__).parent
CONTAINERD: Final = "github.com/containerd/containerd/v2"
CONTAINERD_VERSION: Final = "v2.3.7"
CONTAINERD_PROGRAMS: Final = ("containerd", "containerd-shim-runc-v2", "ctr")
SNAPSHOTTERS_LEFT_OUT: Final = "no_btrfs,no_devmapper,no_zfs,no_aufs"
"""The containerd build tags. The nodes use overlayfs."""

KUBERNETES: Final = ("kubelet", "kube-proxy")


def modules() -> tuple[Module, ...]:
    """Return the modules of the node executables."""
    flags = next(module.flags for module in build.modules(build.DEFAULT) if module.folder.startswith("kubernetes"))
    return (
        Module(
            f"kubernetes-{build.DEFAULT}",
            {f"k8s.io/kubernetes/cmd/{name}": name for name in KUBERNETES},
            flags,
            root=HERE,
        ),
        Module(
            "containerd",
            {f"{CONTAINERD}/cmd/{name}": name for name in CONTAINERD_PROGRAMS},
            f"-s -w -X {CONTAINERD}/version.Version={CONTAINERD_VERSION}",
            tags=SNAPSHOTTERS_LEFT_OUT,
            root=HERE,
        ),
        Module("coredns", {".": "coredns"}, root=HERE),
    )


def assets(say: Say) -> Path:
    """Return the directory that contains the node executables. Build missing executables."""
    wanted = modules()
    target = build.cache() / f"node-{build.content(wanted)}"
    build.make(wanted, target, say)
    return target


def metrics_server(say: Say) -> Path:
    """Return metrics-server. It is built on demand because few tests use it."""
    module = Module("metrics-server", {"sigs.k8s.io/metrics-server/cmd/metrics-server": "metrics-server"}, root=HERE)
    target = build.cache() / f"metrics-server-{build.content((module,))}"
    build.make((module,), target, say)
    return target / "metrics-server"


def say(text: str) -> None:
    """Print a progress message."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{assets(say)}\n")
    except build.BuildError as error:
        sys.exit(f"the programs of a node cannot be built: {error}")
