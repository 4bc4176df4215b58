"""Installs the product on the cluster with the commands on its pages."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from testkit import repository
from tests.controlplane.process import StartError
from tests.node.cluster import NodeCluster
from tests.node.images import PRODUCT

from leaderworkerset.api.metadata import MANAGER

ROOT: Final = repository.ROOT
NAMESPACE: Final = "lws-system"
ADDITIONS: Final = ("in-place",)
"""Directories with optional permissions of the manager."""

MANIFESTS: Final = Path(__file__).parent / "manifests"

CONFIGURATION: Final = MANIFESTS / "manager.yaml"
OPERATOR_CRD: Final = "leaderworkersetoperators.operator.openshift.io"
OF_OPERATOR: Final = (
    "deployment,service,networkpolicy,serviceaccount,role,rolebinding,clusterrole,clusterrolebinding,crd"
)
"""The CRDs of the operator, as listed on the page about installation methods."""

PLAIN: Final = MANIFESTS / "plain.yaml"
"""A configuration that earlier versions also accept."""


def install(
    cluster: NodeCluster,
    image: str = PRODUCT,
    version: Mapping[str, str] = MappingProxyType({}),
    configuration: Path = CONFIGURATION,
    command: str = "lwsctl.cli",
) -> str:
    """Install or update the manager image, and wait until its managers are ready. Return the output.

    `version` is the environment in which `lws` has another version, whose module is `command`.
    """
    words = ["install", f"--image={image}", f"--config={configuration}", "--wait", "--timeout=5m"]
    done = subprocess.run(
        [*cluster.inside, sys.executable, "-m", command, *words],
        env={**cluster.environment, **version},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        state = cluster.kubectl("get", "pods,events", f"--namespace={NAMESPACE}")
        raise StartError(f"lws install ended with {done.returncode}:\n{done.stdout}{done.stderr}\n{state}")
    for name in ADDITIONS:
        cluster.kubectl("apply", "--filename", str(ROOT / "deploy" / name / "manager.yaml"))
    return done.stdout


def restore(cluster: NodeCluster) -> None:
    """Install with `lws install` after any other method, and remove remaining objects of the other method.

    A test that failed, or a run that was killed, may have left it.
    """
    if cluster.kubectl("get", "crd", OPERATOR_CRD, "--ignore-not-found", "--output=name"):
        cluster.kubectl("delete", "lwsop", "--all", "--cascade=orphan", "--timeout=1m")
    cluster.kubectl("delete", OF_OPERATOR, f"--namespace={NAMESPACE}", "--selector=app.kubernetes.io/name=lws-operator")
    cluster.kubectl("delete", "secret", f"--namespace={NAMESPACE}", "--selector=owner=helm,name=lws")
    install(cluster)
    await_managers(cluster)


@contextmanager
def no_managers(cluster: NodeCluster) -> Iterator[None]:
    """Scale the manager to 0, and restore the replica count afterwards."""
    scale = ("scale", f"deployment/{MANAGER}", f"--namespace={NAMESPACE}")
    selected = ("--selector=control-plane=controller-manager", f"--namespace={NAMESPACE}")
    cluster.kubectl(*scale, "--replicas=0")
    try:
        # A pod that a kubelet rejected remains in the phase Failed, and does not run.
        running = (*selected, "--field-selector=status.phase!=Failed")
        cluster.kubectl("wait", "pods", *running, "--for=delete", "--timeout=2m")
        yield
    finally:
        cluster.kubectl(*scale, "--replicas=2")
        await_managers(cluster)


def await_managers(cluster: NodeCluster) -> None:
    """Wait until all managers use the latest template of their Deployment and are ready."""
    cluster.kubectl("rollout", "status", f"deployment/{MANAGER}", f"--namespace={NAMESPACE}", "--timeout=5m")
