"""Runs a control plane, and the operator as a process with the permissions of its service account."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deploy.packages.operatordeployment import OperatorSettings, build_operator, cluster, deployment
from testkit.clusters.kubernetes import build_node
from testkit.repository import ROOT
from tests.controlplane import build
from tests.controlplane.audit import Audit
from tests.controlplane.process import Plane, control_plane, free_ports
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.install.served import may_listen
from tests.kubernetes.lwsoperator import certmanager, managers
from tests.kubernetes.lwsoperator.waiting import until

from kuberuntime.objects import meta
from leaderworkerset.install.operatornames import OPERATOR, OPERATORS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator.operand import ISSUED, OperatorPlace
from leaderworkerset.operator.operatorprocess import registry
from leaderworkerset.operator.verbosity import Verbosity

IN = ("-n", OPERATOR)
ACCOUNT = f"system:serviceaccount:{OPERATOR}:{OPERATOR}"
MANAGER = ("deployment/lws-controller-manager", *IN)
OBJECT = "leaderworkersetoperators/cluster"
IMAGE = "example.com/lws:1"
PROGRAMS = ROOT / "deploy"
"""The directory that contains the executables which images contain in `/`."""


@dataclass
class OperatorCluster:
    """The administrator of a cluster with an operator. The operator process can be stopped and restarted."""

    administrator: Administrator
    directory: Path
    process: "OperatorRun | None" = None

    @property
    def log(self) -> Path:
        """Return the path of the operator log."""
        return self.directory / "operator.log"

    def start(self, image: str = IMAGE) -> None:
        """Start the operator with the permissions of its service account, for an operand with this image."""
        token = self.administrator.kubectl("create", "token", OPERATOR, *IN).strip()
        config = json.loads(self.administrator.plane.kubeconfig.read_text())
        config["users"] = [{"name": "admin", "user": {"token": token}}]
        kubeconfig = self.directory / "operator.kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        self.process = OperatorRun(kubeconfig, self.log, image)

    def stop(self) -> None:
        """Stop the operator gracefully."""
        if self.process is not None:
            self.process.stop()
        self.process = None

    def install(self) -> None:
        """Install the operator without its process and without the object `cluster`."""
        # One call creates the CRD and the namespace, so that the other calls find them.
        self.administrator.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", objects=objects())

    def cluster(self) -> dict[str, Any]:
        """Return the `cluster` object."""
        return self.administrator.there(OBJECT)

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Return the status and the reason of each condition."""
        found = meta.status(self.cluster()).get("conditions") or []
        return {one["type"]: (one["status"], one["reason"]) for one in found}

    def create(self, **spec: Any) -> None:
        """Create the object or replace its spec, without reserved annotations."""
        self.administrator.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", objects=[cluster(**spec)])

    def patch(self, **spec: Any) -> None:
        """Change the spec of the object `cluster`."""
        self.administrator.kubectl("patch", OBJECT, "--type=merge", "-p", json.dumps({"spec": spec}))

    def manager(self) -> dict[str, Any]:
        """Return the Deployment of the operand."""
        return self.administrator.there(*MANAGER)

    def await_condition(self, kind: str, status: str, reason: str) -> None:
        """Wait for a condition."""
        try:
            until(lambda: self.conditions().get(kind) == (status, reason), f"{kind}={status}/{reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{meta.status(self.cluster())}\n{self.log.read_text()[-4000:]}") from error

    def await_installed(self) -> None:
        """Wait until the operand is installed."""
        certmanager.install(self.administrator)
        for name, secret in ISSUED.items():
            if self.administrator.get(f"secret/{secret}", *IN) is None:
                certmanager.issue(self.administrator, name, OPERATOR)
        self.await_condition("Degraded", "False", "AsExpected")

    def await_available(self) -> None:
        """Wait until the operand is installed and running, and its webhooks respond.

        A process responds for the simulated pods.
        """
        self.await_installed()
        if self.conditions().get("Available") != ("True", "AsExpected"):
            with managers.served(self.administrator, self.directory):
                self.await_condition("Available", "True", "AsExpected")


def objects() -> list[dict[str, Any]]:
    """Return the objects of an operator installation, except the object `cluster`."""
    kinds = registry(OperatorPlace(namespace=OPERATOR, image=IMAGE, version="", declared=MANAGED), Verbosity())
    return [obj for kind, obj in build_operator(kinds, MANAGED, OperatorSettings()) if kind != OPERATORS]


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Run a control plane that logs the operator's requests, and rejects requests that its roles do not allow."""
    if not may_listen():
        pytest.skip("this user may not listen at port 443")
    directory = tmp_path_factory.mktemp("plane")
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    flags = (
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        *Audit(directory).flags(ACCOUNT),
        # so that a manager can listen on the address of the webhook Service
        "--service-cluster-ip-range=127.78.0.0/16",
    )

    def define(plane: Plane) -> None:
        administrator = Administrator(plane, directory, Audit(directory))
        administrator.kubectl("apply", "--server-side", "-f", "-", objects=objects()[:1])

    with control_plane(assets, directory, prepare=define, flags=flags) as running:
        yield running


@pytest.fixture(scope="package")
def site(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorCluster]:
    """Install the operator, and run it."""
    home = tmp_path_factory.mktemp("home")
    administrator = Administrator(plane, home, Audit(plane.directory))
    administrator.kubectl("create", "-f", "-", objects=[build_node(index) for index in range(2)])
    found = OperatorCluster(administrator, home)
    found.install()
    found.start()
    try:
        yield found
    finally:
        found.stop()


class OperatorRun:
    """Runs the operator as a process with the command, arguments and environment of its Deployment."""

    def __init__(self, kubeconfig: Path, log: Path, image: str, *, namespace: str = OPERATOR) -> None:
        self._log = log.open("ab")
        begun = log.stat().st_size
        (port,) = free_ports(1)
        words = [f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", f"--listen=127.0.0.1:{port}", "-v=4"]
        (container,) = deployment(OperatorSettings(operand_image=image))["spec"]["template"]["spec"]["containers"]
        program = f"{PROGRAMS}{container['command'][0]}"
        self._process = subprocess.Popen(
            [sys.executable, "-IBu", program, *container["args"], *words],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=os.environ | {one["name"]: one["value"] for one in container["env"] if "value" in one},
        )
        # The operator does not reconcile before this line.
        until(lambda: b"serving probes and metrics" in log.read_bytes()[begun:], "an operator that serves")

    def kill(self) -> None:
        """Kill the operator, which simulates the loss of its node."""
        self._process.kill()
        self._process.wait()
        self._log.close()

    def stop(self) -> None:
        """Stop the operator, which must exit with code 0."""
        self._process.terminate()
        try:
            assert self._process.wait(timeout=30) == 0
        finally:
            self._process.kill()
            self._log.close()


@pytest.fixture
def available(site: OperatorCluster) -> OperatorCluster:
    """Return a cluster with a running operand, as configured in the sample."""
    site.create()
    site.await_available()
    return site
