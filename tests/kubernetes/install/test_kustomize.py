"""Tests that the kustomize base, built by kubectl, equals the objects of `lws install`, also with overlays."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.packages import userroles
from testkit.repository import ROOT
from tests.kubernetes.install.conftest import Administrator

from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.capabilities import names
from leaderworkerset.install import installsettings
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.install.operatornames import IMAGE_VARIABLE, OPERATOR
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager.config import configuration
from leaderworkerset.manager.config.configuration import GroupRestarts

pytestmark = pytest.mark.slow

KUSTOMIZE = ROOT / "deploy" / "kustomize"


def by_name(objects: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}


def built(chosen: InstallSettings) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the installed objects. CRD files do not have the labels that `lws uninstall` uses."""
    objects = by_name(obj for _, obj in build_all(MANAGED, chosen))
    for resource in MANAGED.custom_resources:
        del objects["CustomResourceDefinition", resource.group_resource]["metadata"]["labels"]
    return objects


def rendered(administrator: Administrator, folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return by_name(yaml.load_all(administrator.kubectl("kustomize", str(folder)), SafeLoader))


def overlay(directory: Path, **fields: Any) -> Path:
    """Write an overlay into an empty directory. kustomize accepts only relative paths."""
    base = Path(*[".."] * len(directory.relative_to("/").parts)) / KUSTOMIZE.relative_to("/")
    content = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [str(base)]}
    components = [str(base / name) for name in fields.pop("components", [])]
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(content | fields | {"components": components}))
    return directory


def test_base_equals_the_installation(settled: Administrator) -> None:
    assert rendered(settled, KUSTOMIZE) == built(InstallSettings())


def test_overlay_sets_namespace_image_and_replicas(settled: Administrator, tmp_path: Path) -> None:
    """All references are updated consistently, including the references in webhooks (R-OP-47)."""
    name, _, tag = installsettings.IMAGE.partition(":")
    folder = overlay(
        tmp_path,
        namespace="serving",
        images=[{"name": name, "newName": "example.com/lws", "newTag": "7"}],
        replicas=[{"name": "lws-controller-manager", "count": 3}],
    )
    assert tag
    assert rendered(settled, folder) == built(
        InstallSettings(namespace="serving", image="example.com/lws:7", replicas=3)
    )


@pytest.mark.parametrize(
    ("component", "kinds"),
    [("gang", managed_kinds("auto")), ("pod-policies", managed_kinds(configured={names.POD_ADMISSION: True}))],
    ids=["gang", "pod-policies"],
)
def test_component_adds_permissions(settled: Administrator, tmp_path: Path, component: str, kinds: Registry) -> None:
    """The permissions equal the permissions of `lws install` with the same user configuration (R-OP-47)."""
    folder = overlay(tmp_path, components=[f"components/{component}"])
    installed = by_name(obj for _, obj in build_all(kinds, InstallSettings()))
    role = ("ClusterRole", "lws-manager-role")
    found = rendered(settled, folder)
    assert found | {role: None} == built(InstallSettings()) | {role: None}
    assert granted(found[role]) == granted(installed[role]) > granted(built(InstallSettings())[role])


def granted(role: JSONObject) -> set[tuple[str, str, str]]:
    """Return the permissions of a role in a form that does not depend on its rules.

    Permissions for webhooks by name are the same in all.
    """
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize(("name", "prometheus"), [("cert-manager", ""), ("prometheus", "monitoring")])
def test_nested_overlay_works_in_any_namespace(
    settled: Administrator, tmp_path: Path, name: str, prometheus: str
) -> None:
    """The replacements on the page change the names and the hosts of certificates (R-OP-47)."""
    page = (ROOT / "docs/how-to/install.md").read_text()
    _, text = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    folder = overlay(tmp_path, namespace="serving", **yaml.safe_load(text))
    (kustomization,) = folder.iterdir()
    kustomization.write_text(kustomization.read_text().replace("deploy/kustomize", f"deploy/kustomize/overlays/{name}"))
    chosen = InstallSettings(
        namespace="serving",
        certificates="cert-manager",
        configuration=installsettings.MOUNTED_CERTIFICATES,
        prometheus=prometheus,
    )
    assert rendered(settled, folder) == built(chosen)


def test_monitoring_component_works_without_cert_manager(settled: Administrator, tmp_path: Path) -> None:
    folder = overlay(tmp_path, namespace="serving", components=["components/monitoring"])
    assert rendered(settled, folder) == built(InstallSettings(namespace="serving", prometheus="monitoring"))


def test_user_roles_component_adds_the_roles(settled: Administrator, tmp_path: Path) -> None:
    folder = overlay(tmp_path, components=["components/user-roles"])
    roles = by_name(obj for _, obj in userroles.build(MANAGED))
    assert rendered(settled, folder) == built(InstallSettings()) | roles


def test_operator_overlay_of_the_page_sets_both_images(settled: Administrator, tmp_path: Path) -> None:
    """The operand image is an environment variable, which `images` alone does not change (R-OP-34)."""
    page = (ROOT / "docs/how-to/operator.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "kustomization.yaml").write_text(text)
    (tmp_path / "leaderworkerset").symlink_to(ROOT)
    (container,) = rendered(settled, tmp_path)["Deployment", OPERATOR]["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    assert container["image"].startswith("registry.example.com/")
    assert variables[IMAGE_VARIABLE] == container["image"]


def test_overlay_of_the_restarts_page_replaces_the_configuration(settled: Administrator, tmp_path: Path) -> None:
    """The configuration is the section on the page, and no other object differs from the base."""
    page = (ROOT / "docs/how-to/restarts.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (section,) = (text for text in blocks if text.startswith("groupRestarts:"))
    (kustomization,) = (text for text in blocks if text.startswith("# kustomization.yaml"))
    (tmp_path / "kustomization.yaml").write_text(kustomization)
    (tmp_path / "controller_manager_config.yaml").write_text(installsettings.CONFIGURATION + section)
    (tmp_path / "leaderworkerset").symlink_to(ROOT)
    found, plain = rendered(settled, tmp_path), built(InstallSettings())
    key = ("ConfigMap", "lws-manager-config")
    read = configuration.parse(found[key]["data"]["controller_manager_config.yaml"].encode())
    assert read.group_restarts == GroupRestarts()
    deployment = ("Deployment", "lws-controller-manager")
    assert {one for one in found.keys() | plain.keys() if found[one] != plain[one]} == {key, deployment}
    annotations = found[deployment]["spec"]["template"]["metadata"]["annotations"]
    assert annotations[labels.CONFIGURATION_HASH] == installsettings.CONFIGURATION + section


def test_base_can_be_applied_and_adopted(fresh: Administrator) -> None:
    """`kubectl apply --server-side -k` applies the base. A later `lws install` only adds its labels."""
    fresh.kubectl("apply", "--server-side", "-k", str(KUSTOMIZE))
    lines = fresh.lws("install").splitlines()
    assert {line.split()[0] for line in lines if not line.endswith("unchanged")} == {
        f"customresourcedefinition/{resource.group_resource}" for resource in MANAGED.custom_resources
    }


def test_overlay_of_the_page_is_an_installation(settled: Administrator, tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/install.md").read_text()
    text, _ = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "kustomization.yaml").write_text(text)
    (tmp_path / "leaderworkerset").symlink_to(ROOT)
    image = "registry.example.com/lws/leaderworkerset:0.2.0"
    assert rendered(settled, tmp_path) == built(InstallSettings(namespace="serving", image=image))
