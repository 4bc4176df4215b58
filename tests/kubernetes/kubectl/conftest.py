"""Runs kubectl with two clusters: an embedded cluster with real processes, and a control plane with kwok."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane import build
from tests.controlplane.process import control_plane
from tests.integration.clusters.managed import set_up

from kuberuntime.objects.meta import JSONObject

SECONDS = 40
LWS = [sys.executable, "-m", "lwsctl.cli"]


@dataclass(frozen=True)
class Place:
    """A cluster and one of its namespaces."""

    name: str
    kubectl: Path
    kubeconfig: Path
    namespace: str = "default"

    def run(self, *words: str, text: str = "", code: int = 0) -> str:
        """Run kubectl until it exits. Fail unless the exit code is `code`. Return the output."""
        result = subprocess.run(
            self.command(*words),
            input=text,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=self.environment,
        )
        told = f"{result.stdout}{result.stderr}"
        assert result.returncode == code, f"{words} ended with {result.returncode}: {told}"
        return told

    def shows(self, text: str, *words: str) -> str:
        """Run kubectl until it prints this string, because events and output appear with a delay."""
        deadline = time.monotonic() + SECONDS
        while text not in (told := self.run(*words)):
            assert time.monotonic() < deadline, f"{words} does not show {text!r}: {told}"
            time.sleep(0.5)
        return told

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start kubectl. Return the running process."""
        return subprocess.Popen(
            self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment
        )

    def command(self, *words: str) -> list[str]:
        """Return the complete command line."""
        return [str(self.kubectl), f"--namespace={self.namespace}", *words]

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of kubectl. The caches of kubectl are next to the kubeconfig."""
        return {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.kubeconfig.parent), "PATH": os.environ["PATH"]}

    def apply(self, *objects: JSONObject, server_side: bool = False) -> str:
        """Apply objects."""
        flags = ["--server-side"] if server_side else []
        return self.run("apply", "-f", "-", *flags, text=yaml.safe_dump_all(objects))


@contextmanager
def embedded(directory: Path) -> Iterator[Path]:
    """Run `lws up`, and yield the kubeconfig."""
    environment = os.environ | {"XDG_STATE_HOME": str(directory), "HOME": str(directory)}
    subprocess.run(
        [*LWS, "up", "kubectl", "--detach"], env=environment, check=True, capture_output=True, timeout=SECONDS
    )
    try:
        yield directory / "lws" / "kubectl" / "kubeconfig"
    finally:
        subprocess.run([*LWS, "down", "kubectl", "--delete"], env=environment, check=True, capture_output=True)


@contextmanager
def kubernetes(directory: Path) -> Iterator[Path]:
    """Run a control plane with nodes, and yield the kubeconfig."""

    def prepare(_: object) -> None:
        asyncio.run(set_up(KubernetesCluster(directory / "kubeconfig")))

    with control_plane(build.assets(print), directory, prepare):
        yield directory / "kubeconfig"


@pytest.fixture(scope="package", params=["embedded", "kubernetes"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run the clusters one after the other."""
    start = {"embedded": embedded, "kubernetes": kubernetes}[request.param]
    with start(tmp_path_factory.mktemp(request.param)) as kubeconfig:
        one = Place(request.param, build.assets(print) / "kubectl", kubeconfig)
        await_explanations(one)
        yield one


def await_explanations(place: Place) -> None:
    """Wait until the cluster publishes the schema of its custom resources. kube-apiserver needs some seconds."""
    deadline = time.monotonic() + SECONDS
    while subprocess.run(
        place.command("explain", "lws"), env=place.environment, capture_output=True, check=False
    ).returncode:
        assert time.monotonic() < deadline, "LeaderWorkerSets are not described"
        time.sleep(0.2)


@pytest.fixture
def place(cluster: Place) -> Iterator[Place]:
    """Return a separate namespace."""
    namespace = f"kubectl-{uuid4().hex[:6]}"
    one = Place(cluster.name, cluster.kubectl, cluster.kubeconfig, namespace)
    one.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    if one.name == "kubernetes":
        one.run("wait", "--for=create", "serviceaccount/default", "--timeout=20s")
    yield one
    one.run("delete", "namespace", namespace, "--wait=false")
