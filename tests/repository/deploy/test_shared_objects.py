"""Tests that objects in several packages are the same in each package."""

import re
from collections.abc import Iterable
from functools import cache

import pytest
import yaml
from deploy import generate
from deploy.packages.operatordeployment import cluster
from testkit.repository import ROOT

from kuberuntime.manifests.yamltext import SafeLoader
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.install.operatornames import OWNED_LABEL, SPEC_HASH
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator import operand, operatorspec
from leaderworkerset.operator.operand import ClusterState, OperatorPlace
from leaderworkerset.webhooks.configurations import MUTATING_NAME

DEPLOY = ROOT / "deploy"
NAMESPACE = "lws-system"
DIFFERING = {"Deployment", "ConfigMap", "RoleBinding"}
"""Kinds that some settings change: certificates, replicas, and the namespace of Prometheus."""

ELSEWHERE = ("ClusterRoleBinding", "lws-metrics-reader-rolebinding")
"""The binding for Prometheus, whose namespace differs in each package."""


IGNORED = {"ownerReferences", "labels", "annotations"}


@cache  # the definitions are large, and several packages contain the same text
def parsed(document: str) -> JSONObject | None:
    return yaml.load(document, SafeLoader)  # type: ignore[no-any-return]


def load(*names: str) -> dict[tuple[str, str], JSONObject]:
    """Return the generated objects in the packages. `test_generate.py` checks the files."""
    documents = (
        document for name in names for document in re.split(r"^---$", generate.everything()[name], flags=re.MULTILINE)
    )
    return by_name(obj for document in documents if (obj := parsed(document)))


def by_name(objects: Iterable[JSONObject]) -> dict[tuple[str, str], JSONObject]:
    return {(obj["kind"], meta.name(obj)): obj for obj in objects}


def plain(obj: JSONObject) -> JSONObject:
    """Remove the labels of the operator or of an installation from an object."""
    own = {name: value for name, value in meta.metadata(obj).items() if name not in IGNORED}
    annotations = {name: text for name, text in meta.annotations(obj).items() if name != SPEC_HASH}
    kept = own | ({"annotations": annotations} if annotations else {})
    return obj | {"metadata": {name: value for name, value in kept.items() if value}}


def operated(certificates: str) -> dict[tuple[str, str], JSONObject]:
    """Return the operand objects in the namespace that the other packages use."""
    found = cluster()
    found["metadata"] |= {"uid": "u", "annotations": {"lws.x-k8s.io/certificates": certificates}}
    place = OperatorPlace(namespace=NAMESPACE, image="x", version="", declared=MANAGED)
    return by_name(obj for _, obj in operand.build(place, operatorspec.read(found), found, ClusterState()))


def release() -> dict[tuple[str, str], JSONObject]:
    return load("manifests.yaml")


def base() -> dict[tuple[str, str], JSONObject]:
    return load(*(f"kustomize/{name}.yaml" for name in ("namespace", "rbac", "manager", "webhooks")))


@pytest.mark.slow
def test_release_contains_the_base_and_the_definitions() -> None:
    """`manifests.yaml` equals the kustomize base (R-OP-46)."""
    definitions = load("crds/leaderworkersets.yaml")
    assert base().keys() | definitions.keys() <= release().keys()
    assert {key: release()[key] for key in base()} == base()
    assert all(plain(release()[key]) == plain(obj) for key, obj in definitions.items())


@pytest.mark.parametrize(
    ("package", "certificates"),
    [
        ("kustomize/overlays/cert-manager/objects.yaml", "cert-manager"),
        ("kustomize/overlays/prometheus/objects.yaml", "cert-manager"),
        ("manifests.yaml", "internal"),
    ],
)
def test_operator_applies_the_objects_of_other_installers(package: str, certificates: str) -> None:
    """Only some settings differ intentionally (R-OP-47, R-OP-56)."""
    theirs, ours = load(package), operated(certificates)
    shared = {key for key in theirs.keys() & ours.keys() if key[0] not in DIFFERING and key != ELSEWHERE}
    assert len(shared) >= 12
    assert {key: plain(ours[key]) for key in shared} == {key: plain(theirs[key]) for key in shared}


def test_operand_pods_equal_those_of_the_release() -> None:
    """Only the image, the replicas, and the hashes in pod annotations differ (R-OP-56)."""
    pods = []
    for objects in (release(), operated("internal")):
        pod = objects["Deployment", "lws-controller-manager"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        kept = {name: value for name, value in pod.items() if name != "topologySpreadConstraints"}
        pods.append(kept | {"containers": [{name: value for name, value in container.items() if name != "image"}]})
    assert pods[0] == pods[1]


def test_chart_installs_the_same_definitions() -> None:
    """All installation methods have the same CRDs (R-OP-54, R-OP-56)."""
    assert load("helm/lws/crds/leaderworkersets.yaml") == load("crds/leaderworkersets.yaml")


def test_webhook_names_sort_after_those_of_kueue() -> None:
    """API servers call webhooks by configuration name, which is the same in all packages (R-KQ-10)."""
    packages = [release(), base(), operated("internal"), operated("cert-manager")]
    packages += [load(f"kustomize/overlays/{name}/objects.yaml") for name in ("cert-manager", "prometheus")]
    for objects in packages:
        names = [name for kind, name in objects if kind == "MutatingWebhookConfiguration"]
        assert names == [MUTATING_NAME]
    assert MUTATING_NAME > "kueue-mutating-webhook-configuration"
    chart = (DEPLOY / "helm/lws/templates/mutatingwebhookconfiguration-mutating-webhook-configuration.yaml").read_text()
    assert f"\n  name: {MUTATING_NAME}\n" in chart  # the name does not contain that of the Helm release


def test_every_image_is_in_the_mirror_list() -> None:
    """One file lists the images for mirrors (R-OP-68, AT-003-1)."""
    listed = set((DEPLOY / "images.txt").read_text().split())
    files = ["manifests.yaml", *(str(path.relative_to(DEPLOY)) for path in DEPLOY.glob("operator/*deployment*.yaml"))]
    named = {
        container["image"]
        for (kind, _), obj in load(*files).items()
        if kind == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
    }
    assert named
    assert named <= listed


def test_installed_objects_lack_labels_of_groups() -> None:
    """Pod webhooks select this label, because an installation must not call its own webhooks."""
    for obj in (*release().values(), *operated("internal").values()):
        template = meta.spec(obj).get("template", {}).get("metadata", {}).get("labels", {})
        assert labels.NAME not in {**meta.labels(obj), **template}


def test_objects_of_the_operator_have_its_label() -> None:
    """Objects of the operator are marked as owned (R-OP-75)."""
    assert all(OWNED_LABEL in meta.labels(obj) for obj in operated("internal").values())
