"""Tests Helm releases on a real control plane. Upgrades from the Go project's charts must not delete objects."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.repository import ROOT
from tests.integration.clusters import objects
from tests.kubernetes.install.conftest import DEFINITION, Administrator
from tests.kubernetes.programs.build import HELM

from kuberuntime.objects import meta
from leaderworkerset.install import workload
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.kinds.managedkinds import MANAGED

pytestmark = [pytest.mark.slow, pytest.mark.skipif(HELM.find() is None, reason=HELM.missing)]

CHART = str(ROOT / "deploy/helm/lws")
IN = ("-n", "lws-system")
GO_IMAGE = {"image": {"manager": {"repository": "registry.k8s.io/lws/lws", "tag": "v0.7.0"}}}
RESET = ("upgrade", "lws", CHART, *IN, "--reset-values")
OURS = "--set=image.manager.repository=registry.example.com/lws/leaderworkerset,image.manager.tag=mine"


@pytest.fixture
def released(fresh: Administrator, tmp_path: Path) -> Iterator[Administrator]:
    """Return the administrator of a cluster with a release of a chart that contains the CRD as a template."""
    chart = tmp_path / "lws"
    (chart / "templates").mkdir(parents=True)
    identity = {"apiVersion": "v2", "name": "lws", "version": "0.7.0", "appVersion": "v0.7.0"}
    deployment = workload.deployment(InstallSettings())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["image"] = "{{ .Values.image.manager.repository }}:{{ .Values.image.manager.tag }}"
    texts = {
        "Chart.yaml": yaml.safe_dump(identity),
        "values.yaml": yaml.safe_dump(GO_IMAGE),
        "templates/crd.yaml": (ROOT / "deploy/crds/leaderworkersets.yaml").read_text(),
        "templates/deployment.yaml": yaml.safe_dump(deployment),
    }
    for name, text in texts.items():
        (chart / name).write_text(text)
    fresh.helm("install", "lws", str(chart), *IN, "--create-namespace")
    fresh.kubectl("wait", "--for=condition=established", f"crd/{DEFINITION}")
    yield fresh
    fresh.helm("uninstall", "lws", *IN)
    definitions = (f"crd/{kind.group_resource}" for kind in MANAGED.custom_resources)
    fresh.kubectl("delete", "--ignore-not-found", "namespace/lws-system", *definitions)


def image(administrator: Administrator) -> str:
    """Return the manager image."""
    deployment = administrator.there("deployment/lws-controller-manager", *IN)
    text: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return text


def commands() -> list[str]:
    """Return the page's commands for the upgrade from the oldest charts and for the downgrade, in order."""
    page = (ROOT / "docs/how-to/helm.md").read_text()
    section = page.partition("## Coming from the Go project's chart")[2]
    found = re.findall(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [line for line in "".join(found).replace("\\\n", "").splitlines() if line]


def test_sets_survive_an_upgrade_from_a_chart_with_crds(released: Administrator) -> None:
    """The upgrade is rejected if Helm would delete LeaderWorkerSets.

    The page's commands do not lose an object (R-OP-54).
    """
    released.await_kind()
    released.kubectl("create", "-f", "-", objects=[objects.lws("web", replicas=2)])
    before = released.there("lws/web")
    refused = released.helm("upgrade", "lws", CHART, *IN, OURS, code=1)
    assert f"kubectl annotate crd {DEFINITION} helm.sh/resource-policy=keep" in refused
    assert released.there("lws/web") == before

    annotate, define, upgrade, back, again = (line.split() for line in commands())
    released.kubectl(*annotate[1:])
    released.kubectl(*(word.replace("deploy/", f"{ROOT}/deploy/") for word in define[1:]))
    released.helm(*(word.replace("deploy/", f"{ROOT}/deploy/") for word in upgrade[1:]))
    assert meta.uid(released.there("lws/web")) == meta.uid(before)
    assert released.there("lws/web")["spec"] == before["spec"]
    assert image(released) == "registry.example.com/lws/leaderworkerset:0.2.0"

    assert "must be specified for an update" in released.helm("rollback", "lws", *IN, code=1)
    released.helm(*back[1:], "1")
    assert image(released) == "registry.k8s.io/lws/lws:v0.7.0"
    assert meta.uid(released.there("lws/web")) == meta.uid(before)
    assert "helm.sh/resource-policy" not in released.there(f"crd/{DEFINITION}")["metadata"]["annotations"]
    assert again == annotate
    released.kubectl(*again[1:])


def test_values_of_a_release_never_keep_the_go_image(released: Administrator) -> None:
    """`--reuse-values` preserves the image repository of the Go manager, which is rejected.

    The message suggests a similar tag (R-OP-52).
    """
    released.kubectl("annotate", f"crd/{DEFINITION}", "helm.sh/resource-policy=keep")
    refused = released.helm("upgrade", "lws", CHART, *IN, "--reuse-values", code=1)
    assert 'image.manager.repository: Invalid value: "registry.k8s.io/lws/lws"' in refused
    assert image(released) == "registry.k8s.io/lws/lws:v0.7.0"
    said = released.helm("upgrade", "lws", CHART, *IN, OURS.replace("tag=mine", "tag=v0.7.0"))
    assert "WARNING: image.manager.tag v0.7.0 has the form of the Go project's tags" in said
    assert "WARNING: no cluster can pull localhost/leaderworkerset:0.2.0" in released.helm(*RESET)
    assert "WARNING" not in released.helm("upgrade", "lws", CHART, *IN, OURS)


def test_subchart_can_be_enabled_by_a_parent_chart(fresh: Administrator, tmp_path: Path) -> None:
    """`condition: lws.enabled` passes the value to the subchart (R-OP-53)."""
    parent: dict[str, Any] = {"apiVersion": "v2", "name": "platform", "version": "1.0.0"}
    dependency = {"name": "lws", "version": "0.2.0", "repository": f"file://{CHART}", "condition": "lws.enabled"}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(parent | {"dependencies": [dependency]}))
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/lws").symlink_to(CHART)
    words = ("template", "platform", str(tmp_path), *IN)
    assert "kind: Deployment" in fresh.helm(*words, "--set=lws.enabled=true")
    assert "kind: Deployment" not in fresh.helm(*words, "--set=lws.enabled=false")
