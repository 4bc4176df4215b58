"""Tests `manifests.yaml` and other release files on a real control plane."""

import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml
from testkit.repository import ROOT
from tests.integration.clusters import objects as sets
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.lwsoperator.certmanager import definition
from tests.kubernetes.programs import build

from kuberuntime.manifests.yamltext import SafeLoader
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, PROMETHEUS_RULES, SERVICE_MONITORS

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"
RELEASE = str(DEPLOY / "manifests.yaml")
IN = ("-n", "lws-system")
HELM = build.HELM.find()


def check(administrator: Administrator, objects: Iterable[dict[str, Any]]) -> None:
    """Validate objects with the API server in an existing namespace."""
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
    administrator.kubectl(*words, objects=list(objects))


def load(text: str) -> list[dict[str, Any]]:
    return [obj for obj in yaml.load_all(text, SafeLoader) if obj]


def test_release_is_applied_by_kubectl(fresh: Administrator) -> None:
    """The manifest runs, contains the objects on the page, and does not change when it is reapplied.

    Rules R-OP-48, R-OP-57, AT-000-1.
    """
    fresh.kubectl("apply", "--server-side", "-f", RELEASE)
    fresh.kubectl("wait", "deploy/lws-controller-manager", *IN, "--for=condition=available", "--timeout=60s")
    pods = fresh.kubectl("get", "pods", *IN, "--no-headers").splitlines()
    assert pods
    assert all(line.startswith("lws-controller-manager-") and line.split()[1:3] == ["1/1", "Running"] for line in pods)
    names = [line for line in fresh.kubectl("get", "crds").splitlines() if "leaderworkersets" in line]
    assert [line.split()[0] for line in names] == ["leaderworkersets.leaderworkerset.x-k8s.io"]
    before = fresh.there("deployment/lws-controller-manager", *IN)["metadata"]["generation"]
    fresh.kubectl("apply", "--server-side", "-f", RELEASE)
    assert fresh.there("deployment/lws-controller-manager", *IN)["metadata"]["generation"] == before
    refused = fresh.kubectl("apply", "-f", str(DEPLOY / "crds/full/leaderworkersets.yaml"), code=1)
    assert "metadata.annotations: Too long" in refused


def test_kind_is_discovered_and_explained(administrator: Administrator) -> None:
    """API discovery and `kubectl explain` support the kind (R-OP-68, AT-003-2)."""
    administrator.lws("install")
    administrator.await_kind()
    (line,) = administrator.kubectl(
        "api-resources", "--api-group=leaderworkerset.x-k8s.io", "--no-headers"
    ).splitlines()
    assert line.split() == ["leaderworkersets", "lws", "leaderworkerset.x-k8s.io/v1", "true", "LeaderWorkerSet"]
    assert "leaderTemplate" in administrator.kubectl("explain", "lws.spec.leaderWorkerTemplate")


FOREIGN = (ISSUERS, CERTIFICATES, SERVICE_MONITORS, PROMETHEUS_RULES)
CHARTS = ("", "enableCertManager=true,enablePrometheus=true", "gangSchedulingManagement.schedulerProvider=volcano")


@pytest.fixture
def equipped(administrator: Administrator) -> Iterator[Administrator]:
    """Return the administrator of a cluster with an installation and the kinds of cert-manager and Prometheus."""
    administrator.lws("install")
    administrator.kubectl("apply", "--server-side", "-f", "-", objects=[definition(kind) for kind in FOREIGN])
    kinds = [f"crd/{kind.group_resource}" for kind in FOREIGN]
    administrator.kubectl("wait", "--for=condition=established", *kinds, "--timeout=30s")
    yield administrator
    administrator.kubectl("delete", *kinds)


def renders(administrator: Administrator) -> dict[str, list[dict[str, Any]]]:
    """Return the objects in each package by package name."""
    folders = ("kustomize", "kustomize/overlays/cert-manager", "kustomize/overlays/prometheus", "operator")
    kustomized = {name: load(administrator.kubectl("kustomize", str(DEPLOY / name))) for name in folders}
    files = ("manifests.yaml", "monitoring/prometheusrule.yaml", *OPERATED)
    plain = {name: load((DEPLOY / name).read_text()) for name in files}
    full = {f"crds/full of {path.stem}": load(path.read_text()) for path in (DEPLOY / "crds/full").glob("*s.yaml")}
    charts = {f"chart with {values}": load(_chart(values)) for values in CHARTS} if HELM is not None else {}
    return kustomized | plain | full | charts


OPERATED = tuple(
    str(path.relative_to(DEPLOY))
    for path in sorted(DEPLOY.glob("olm/*/manifests/*.yaml"))
    if not path.name.endswith("clusterserviceversion.yaml")
)


def test_every_render_is_accepted_and_its_pods_are_restricted(equipped: Administrator) -> None:
    """Each package is applied with a server-side dry run, and the server supports each of its kinds (R-OP-80).

    R-OP-72: a namespace that enforces Pod Security `restricted` admits the pods of every package.
    """
    found = renders(equipped)
    for name, objects in found.items():
        assert objects, name
        check(equipped, [obj | {"metadata": {**obj["metadata"], **_here(obj)}} for obj in objects])

    namespace = equipped.there("namespace/lws-system")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    pods = [
        pod_of(obj["spec"]["template"], f"{number}-{obj['metadata']['name']}")
        for number, objects in enumerate(found.values())
        for obj in objects
        if obj["kind"] == "Deployment"
    ]
    assert len(pods) >= 5
    equipped.kubectl("create", *IN, "--dry-run=server", "-f", "-", objects=pods)
    privileged = pod_of(pods[0], "privileged")
    privileged["spec"] = {"containers": [{"name": "main", "image": "app:1"}]}
    assert "PodSecurity" in equipped.kubectl("create", *IN, "--dry-run=server", "-f", "-", objects=[privileged], code=1)


def pod_of(template: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a pod that is built from a template, with an existing service account."""
    spec = template["spec"] | {"serviceAccountName": "default"}
    own = {"name": f"pod-{name}", "labels": template["metadata"].get("labels", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec}


def test_kind_defined_later_is_discovered(fresh: Administrator) -> None:
    """A client such as KServe detects the kind later, without a restart (R-OP-68, AT-003-4)."""
    manifest = [sets.lws("web", replicas=1)]
    refused = fresh.kubectl("create", "-f", "-", objects=manifest, code=1)
    # This is the message if kubectl has cached the kinds that an earlier test installed.
    assert "no matches for kind" in refused or "could not find the requested resource" in refused
    fresh.lws("install")
    fresh.kubectl("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")  # nobody answers
    fresh.await_kind()
    fresh.kubectl("create", "-f", "-", objects=manifest)


def _here(obj: dict[str, Any]) -> dict[str, str]:
    """Move an object into an existing namespace."""
    return {"namespace": "lws-system"} if "namespace" in obj["metadata"] else {}


def _chart(values: str) -> str:
    flags = ["-n", "lws-system", "--kube-version=1.36.0", "--skip-tests", *(["--set", values] if values else [])]
    words = [str(HELM), "template", "lws", str(DEPLOY / "helm/lws"), *flags]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
