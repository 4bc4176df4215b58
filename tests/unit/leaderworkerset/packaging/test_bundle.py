"""The packages for the Operator Lifecycle Manager: a linter of what its validators look for (R-OP-69 to R-OP-71)."""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managed import MANAGED
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorcrd import operator_crd
from leaderworkerset.operator.operatordeployment import OperatorSettings, build_operator
from leaderworkerset.operator.operatorkind import registry
from leaderworkerset.operator.verbosity import Verbosity
from leaderworkerset.packaging import bundle, catalog
from leaderworkerset.packaging.bundle import ALIAS, LEADER_WORKER_SET, PACKAGES, Package

CHOSEN = OperatorSettings(image="example.com/operator@sha256:01", operand_image="example.com/lws@sha256:02")
KINDS = registry(MANAGED, OperatorPlace(namespace="x", image="", version=""), Verbosity())
each = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)


def version(package: Package) -> JSONObject:
    return bundle.version(package, KINDS, MANAGED, CHOSEN)


def modes(package: Package) -> dict[str, bool]:
    return {one["type"]: one["supported"] for one in version(package)["spec"]["installModes"]}


def granted(rules: Iterable[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule.get("apiGroups", ["-"])
        for resource in rule.get("resources", rule.get("nonResourceURLs", []))
        for verb in rule["verbs"]
    }


def test_names_are_those_of_the_contract() -> None:
    """R-OP-36, R-OP-37, R-OP-38, R-OP-58."""
    assert version(LEADER_WORKER_SET)["metadata"]["name"] == "leader-worker-set.v1.0.0"
    assert LEADER_WORKER_SET.channels == ("stable-v1.0",)
    assert modes(LEADER_WORKER_SET) == {
        "OwnNamespace": True,
        "SingleNamespace": False,
        "MultiNamespace": False,
        "AllNamespaces": False,
    }
    assert "lws" in version(LEADER_WORKER_SET)["spec"]["displayName"]


def test_the_recipe_works_as_printed() -> None:
    """R-OP-58 (2b): package lws-operator, channel stable, in a namespace that serves all."""
    assert (ALIAS.name, ALIAS.channels) == ("lws-operator", ("stable",))
    assert modes(ALIAS)["AllNamespaces"]
    (deployment,) = version(ALIAS)["spec"]["install"]["spec"]["deployments"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == {"name": "openshift-lws-operator", "app.kubernetes.io/name": "lws-operator"}


@each
def test_everything_that_consoles_read_is_there(package: Package) -> None:
    """R-OP-70."""
    found = version(package)
    annotations, spec = found["metadata"]["annotations"], found["spec"]
    for name in (
        "capabilities",
        "categories",
        "containerImage",
        "createdAt",
        "description",
        "support",
        "olm.skipRange",
    ):
        assert annotations[name]
    samples = json.loads(annotations["alm-examples"])
    assert [one["metadata"]["name"] for one in samples] == ["cluster", "cluster"]
    assert json.loads(annotations["operatorframework.io/initialization-resource"]) == samples[0]
    assert samples[0]["spec"] == {"managementState": "Managed", "logLevel": "Normal", "operatorLogLevel": "Normal"}
    assert spec["icon"][0]["mediatype"] == "image/svg+xml"
    assert set(annotations["categories"].split(", ")) <= {"AI/Machine Learning", "Integration & Delivery"}
    assert all(isinstance(value, str) for value in annotations.values())


@each
def test_every_field_of_the_spec_is_described(package: Package) -> None:
    """R-OP-69: scorecard's descriptors."""
    (owned,) = version(package)["spec"]["customresourcedefinitions"]["owned"]
    root = operator_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert {one["path"] for one in owned["specDescriptors"]} == set(root["spec"]["properties"])
    assert {one["path"] for one in owned["statusDescriptors"]} <= set(root["status"]["properties"])
    assert owned["resources"]


@each
def test_every_image_is_related(package: Package) -> None:
    """R-OP-70: what a container or a RELATED_IMAGE variable names can be mirrored."""
    spec = version(package)["spec"]
    (deployment,) = spec["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    named = {container["image"], *(one["value"] for one in container["env"] if one["name"].startswith("RELATED_IMAGE"))}
    assert named == {one["image"] for one in spec["relatedImages"]}


@each
def test_the_operator_holds_every_right_that_it_hands_on(package: Package) -> None:
    """R-OP-29: an API server refuses roles that allow more than their creator may."""
    spec = version(package)["spec"]["install"]["spec"]
    held = granted(rule for part in (*spec["clusterPermissions"], *spec["permissions"]) for rule in part["rules"])
    handed = granted(
        rule
        for chosen in (InstallSettings(), InstallSettings(certificates="cert-manager", prometheus="monitoring"))
        for kind, obj in build_all(MANAGED, chosen)
        if kind.kind in {"Role", "ClusterRole"}
        for rule in obj["rules"]
    )
    assert handed - held == set()


@each
def test_what_olm_installs_is_what_the_manifests_install(package: Package) -> None:
    """R-OP-56: one source of all packages."""
    objects = {kind.kind: obj for kind, obj in build_operator(KINDS, MANAGED, CHOSEN)}
    (deployment,) = version(package)["spec"]["install"]["spec"]["deployments"]
    assert deployment["spec"] == objects["Deployment"]["spec"]
    _, definition = bundle.manifests(package, KINDS, MANAGED, CHOSEN)
    assert definition["spec"] == objects["CustomResourceDefinition"]["spec"]


@each
def test_no_right_is_a_wildcard(package: Package) -> None:
    spec = version(package)["spec"]["install"]["spec"]
    rules = granted(rule for part in (*spec["clusterPermissions"], *spec["permissions"]) for rule in part["rules"])
    assert not [one for one in rules if "*" in one]


@each
def test_annotations_and_labels_of_the_bundle_agree(package: Package) -> None:
    """R-OP-36."""
    annotations = bundle.metadata(package)["annotations"]
    labels = dict(re.findall(r"^LABEL (\S+)=(\S+)$", bundle.containerfile(package), re.MULTILINE))
    assert labels == annotations
    assert annotations["operators.operatorframework.io.bundle.channel.default.v1"] in package.channels


@each
def test_the_catalog_leads_to_the_newest_version(package: Package) -> None:
    """R-OP-71: every channel has one head, every entry a bundle, the default channel exists."""
    blobs = catalog.blobs(package, version(package), CHOSEN)
    by_schema: dict[str, list[JSONObject]] = {}
    for blob in blobs:
        by_schema.setdefault(blob["schema"], []).append(blob)
    (head,) = by_schema["olm.package"]
    channels = {one["name"]: one for one in by_schema["olm.channel"]}
    assert head["defaultChannel"] in channels
    names = {one["name"] for one in by_schema["olm.bundle"]}
    assert {entry["name"] for one in channels.values() for entry in one["entries"]} == names
    (one,) = by_schema["olm.bundle"]
    kinds = {entry["type"] for entry in one["properties"]}
    assert {"olm.package", "olm.gvk", "olm.csv.metadata"} <= kinds
    assert {"example.com/operator@sha256:01", "example.com/lws@sha256:02"} <= {i["image"] for i in one["relatedImages"]}
