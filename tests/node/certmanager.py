"""Runs the controller and the CA injector of cert-manager on the first machine."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml
from tests.controlplane import build
from tests.controlplane.build import Module, Say
from tests.node import programs
from tests.node.cluster import NodeCluster

MODULE: Final = "github.com/cert-manager/cert-manager"
"""Since version 1.12, the names of the modules differ from their directories, so no module proxy serves them."""

PROGRAMS: Final = ("controller", "cainjector")
DEFINITIONS: Final = "deploy/crds"


def assets(say: Say) -> Path:
    """Return the directory with both executables, which are built on demand."""
    module = Module("cert-manager", {f"{MODULE}/cmd/{name}": name for name in PROGRAMS}, root=programs.HERE)
    target = build.cache() / f"cert-manager-{build.content((module,))}"
    build.make((module,), target, say)
    return target


def definitions(say: Say) -> list[str]:
    """Return the cert-manager CRDs without the labels from its chart."""
    words = [str(build.find_go(say)), "list", "-f", "{{.Module.Dir}}", f"{MODULE}/cmd/{PROGRAMS[0]}"]
    folder = subprocess.run(
        words, cwd=programs.HERE / "cert-manager", capture_output=True, text=True, check=True
    ).stdout
    found = [yaml.safe_load(file.read_text()) for file in sorted(Path(folder.strip(), DEFINITIONS).glob("crd-*.yaml"))]
    return [yaml.safe_dump({**one, "metadata": {"name": one["metadata"]["name"]}}) for one in found]


@contextmanager
def running(cluster: NodeCluster) -> Iterator[None]:
    """Run cert-manager until the context exits. Then remove the CRDs of cert-manager."""
    machine, directory = cluster.machines[0], assets(programs.say)
    text = "---\n".join(definitions(programs.say))
    cluster.kubectl("apply", "--server-side", "--filename=-", text=text)
    cluster.kubectl("wait", "--for=condition=established", "crd/certificates.cert-manager.io", "--timeout=1m")
    for name in PROGRAMS:
        words = [str(directory / name), f"--kubeconfig={cluster.kubeconfig}", "--leader-elect=false"]
        machine.start(f"cert-manager-{name}", words)
    try:
        yield
    finally:
        for name in PROGRAMS:
            machine.kill(f"cert-manager-{name}")
        cluster.kubectl("delete", "--filename=-", "--wait=false", text=text)
