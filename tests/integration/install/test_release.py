"""The files of a release on a real control plane: `manifests.yaml` (AT-000-1), and whatever else an API server can check."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.install.conftest import Administrator
from tests.integration.lwsoperator.certmanager import definition
from tests.packages import build

from leaderworkerset.install.foreign import CERTIFICATES, ISSUERS, SERVICE_MONITORS

pytestmark = pytest.mark.slow

DEPLOY = Path(__file__).parents[3] / "deploy"
RELEASE = str(DEPLOY / "manifests.yaml")
IN = ("-n", "lws-system")
HELM = build.HELM.find()


def check(administrator: Administrator, objects: Iterable[dict[str, Any]]) -> None:
    """Let the API server check objects that live in a namespace which is there."""
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
    administrator.kubectl(*words, objects=list(objects))


def load(text: str) -> list[dict[str, Any]]:
    return [obj for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]


def test_a_release_is_applied_by_kubectl(fresh: Administrator) -> None:
    """AT-000-1: it runs, lists what the page lists, and a second time changes nothing."""
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


def test_the_kind_is_found_and_explained(administrator: Administrator) -> None:
    """AT-003-2."""
    administrator.lws("install")
    administrator.await_kind()
    (line,) = administrator.kubectl(
        "api-resources", "--api-group=leaderworkerset.x-k8s.io", "--no-headers"
    ).splitlines()
    assert line.split() == ["leaderworkersets", "lws", "leaderworkerset.x-k8s.io/v1", "true", "LeaderWorkerSet"]
    assert "leaderTemplate" in administrator.kubectl("explain", "lws.spec.leaderWorkerTemplate")


def test_every_render_passes_the_api_server(administrator: Administrator) -> None:
    """R-OP-80: overlays, operator and chart, with the kinds of cert-manager and Prometheus."""
    administrator.lws("install")
    foreign = [definition(kind) for kind in (ISSUERS, CERTIFICATES, SERVICE_MONITORS)]
    administrator.kubectl("apply", "--server-side", "-f", "-", objects=foreign)
    try:
        for kind in (ISSUERS, CERTIFICATES, SERVICE_MONITORS):
            administrator.kubectl("wait", "--for=condition=established", f"crd/{kind.group_resource}", "--timeout=30s")
        for overlay in ("cert-manager", "prometheus"):
            check(administrator, load(administrator.kubectl("kustomize", str(DEPLOY / "kustomize/overlays" / overlay))))
        operator = load(administrator.kubectl("kustomize", str(DEPLOY / "operator")))
        check(administrator, [obj | {"metadata": {**obj["metadata"], **_here(obj)}} for obj in operator])
        if HELM is not None:
            check(administrator, load(_chart("enableCertManager=true,enablePrometheus=true")))
    finally:
        administrator.kubectl(
            "delete", "crd", *(kind.group_resource for kind in (ISSUERS, CERTIFICATES, SERVICE_MONITORS))
        )


def _here(obj: dict[str, Any]) -> dict[str, str]:
    """Move an object into the namespace that is there."""
    return {"namespace": "lws-system"} if "namespace" in obj["metadata"] else {}


def _chart(values: str) -> str:
    flags = ["-n", "lws-system", "--kube-version=1.36.0", "--skip-tests", "--set", values]
    words = [str(HELM), "template", "lws", str(DEPLOY / "helm/lws"), *flags]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
