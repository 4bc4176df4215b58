"""Runs one control plane for all installation tests. Each test uses a terminal and a clean cluster."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import pytest
import yaml
from testkit.clusters.kubernetes import build_node
from tests.controlplane import build, process
from tests.controlplane.audit import Audit
from tests.controlplane.process import Plane, control_plane
from tests.kubernetes.manager.installation import ACCOUNT
from tests.kubernetes.programs.build import HELM

from kuberuntime.objects import meta, resources
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import labels
from leaderworkerset.install.installsettings import NAMESPACE, InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.install.operatornames import OPERATORS
from leaderworkerset.kinds.managedkinds import MANAGED

SECONDS = 180
NOT_FOUND = 404
DEFINITION = "leaderworkersets.leaderworkerset.x-k8s.io"
WATCHED: Final[Mapping[str, Resource]] = {
    "clusterrole": resources.CLUSTER_ROLES,
    "configmap": resources.CONFIG_MAPS,
    "crd": resources.CUSTOM_RESOURCE_DEFINITIONS,
    "deployment": resources.DEPLOYMENTS,
    "networkpolicy": resources.NETWORK_POLICIES,
    "secret": resources.SECRETS,
    "service": resources.SERVICES,
    OPERATORS.plural: OPERATORS,
}
"""Tests read objects with API requests, because starting kubectl repeatedly takes longer than the wait."""


@dataclass(frozen=True)
class Administrator:
    """Runs commands, and returns their output."""

    plane: Plane
    directory: Path
    audit: Audit

    def lws(self, *words: str, code: int = 0, environment: Mapping[str, str] | None = None) -> str:
        """Run `lws`. Return its output, or its error message if an error is expected."""
        result = self._run([sys.executable, "-m", "lwsctl.cli", *words], environment or {}, None)
        assert result.returncode == code, f"{words} ended with {result.returncode}:\n{result.stdout}{result.stderr}"
        return result.stderr if code else result.stdout

    def install(self) -> str:
        """Install, and wait until the manager pods are ready. kwok simulates them, so webhooks do not respond."""
        output = self.lws("install")
        self.kubectl("rollout", "status", "deployment/lws-controller-manager", "-n", NAMESPACE, f"--timeout={SECONDS}s")
        return output

    def kubectl(self, *words: str, code: int = 0, objects: Any = None) -> str:
        """Run `kubectl` with objects as standard input. Return its output."""
        text = yaml.safe_dump_all(objects) if objects is not None else None
        result = self._run([str(self.plane.assets / "kubectl"), *words], {}, text)
        assert result.returncode == code, f"{words} ended with {result.returncode}:\n{result.stdout}{result.stderr}"
        return result.stdout + result.stderr

    def helm(self, *words: str, code: int = 0) -> str:
        """Run `helm`. Return its output, or its error message if an error is expected."""
        result = self._run([str(HELM.find()), *words], {}, None)
        assert result.returncode == code, f"{words} ended with {result.returncode}:\n{result.stdout}{result.stderr}"
        return result.stderr if code else result.stdout

    def shell(self, text: str) -> None:
        """Run the `kubectl` commands on a page."""
        found = {"PATH": f"{self.plane.assets}:{os.environ['PATH']}"}
        result = self._run(["sh", "-ec", text], found, None)
        assert result.returncode == 0, result.stderr

    def get(self, *words: str) -> dict[str, Any] | None:
        """Return an object as kubectl prints it, or None if it does not exist."""
        if path := path_of(*words):
            return self._read(path)
        text = self.kubectl("get", "--ignore-not-found", "-o", "json", *words)
        found: dict[str, Any] | None = json.loads(text) if text.strip() else None
        return found

    def installed(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the installed objects by kind and name."""
        names = [
            f"{kind.plural}.{kind.version}.{kind.group}/{meta.name(obj)}"
            for kind, obj in build_all(MANAGED, InstallSettings())
        ]
        found = self.get(*names, "-n", NAMESPACE) or {"items": []}
        return {(obj["kind"], meta.name(obj)): obj for obj in found.get("items", [found])}

    def await_kind(self, plural: str = "leaderworkersets") -> None:
        """Wait until a kind is served and `kubectl explain` describes it."""
        deadline = time.monotonic() + 30
        words = [str(self.plane.assets / "kubectl"), "explain", plural]
        while (result := self._run(words, {}, None)).returncode:
            assert time.monotonic() < deadline, result.stderr
            time.sleep(0.5)

    def there(self, *words: str) -> dict[str, Any]:
        """Return an object. Fail if it does not exist."""
        found = self.get(*words)
        assert found is not None, words
        return found

    def _read(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(process.get(self.plane, path, seconds=SECONDS))
        except HTTPError as error:
            error.close()
            if error.code != NOT_FOUND:
                raise
            return None
        return found

    def _run(
        self, words: list[str], environment: Mapping[str, str], text: str | None
    ) -> "subprocess.CompletedProcess[str]":
        known = {"KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.directory)}
        return subprocess.run(
            words,
            env={**os.environ, **known, **environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            input=text,
            check=False,
        )


def path_of(named: str, *options: str) -> str:
    """Return the API path of a single object if tests wait for its kind, or an empty string otherwise.

    >>> path_of("configmap/a", "-n", "b"), path_of("crd/a"), path_of("pod/a"), path_of("crd/a", "crd/b")
    ('/api/v1/namespaces/b/configmaps/a', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a', '', '')
    """
    kind, _, name = named.partition("/")
    resource, namespace = WATCHED.get(kind), options[1] if options[:1] == ("-n",) else "default"
    return resource.path(namespace, name) if resource and name and len(options) in {0, 2} else ""


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Run a control plane that validates owner references and logs the manager's requests."""
    directory = tmp_path_factory.mktemp("plane")
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    flags = (
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        *Audit(directory).flags(ACCOUNT),
        "--service-cluster-ip-range=127.77.0.0/16",  # so that a test can listen on a Service address
    )
    with control_plane(assets, directory, flags=flags) as running:
        yield running


@pytest.fixture(scope="package")
def settled(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Administrator:
    """Return the administrator of a cluster with nodes."""
    administrator = Administrator(plane, tmp_path_factory.mktemp("home"), Audit(plane.directory))
    administrator.kubectl("create", "-f", "-", objects=[build_node(index) for index in range(4)])
    return administrator


@pytest.fixture
def administrator(settled: Administrator) -> Iterator[Administrator]:
    """Return the administrator of a cluster without a manager.

    The namespace and the CRD of earlier tests may remain.
    """
    yield settled
    settled.kubectl("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")
    if settled.get("crd", DEFINITION):
        settled.kubectl("delete", "lws", "--all", "-A")
    settled.kubectl("delete", "service", "-A", "-l", labels.NAME)  # the garbage collector would delete them later
    settled.lws("uninstall", "--keep-crd")


@pytest.fixture
def fresh(administrator: Administrator) -> Administrator:
    """Return the administrator of a cluster on which nothing was ever installed."""
    administrator.lws("uninstall", "--delete-leaderworkersets")
    administrator.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")
    return administrator
