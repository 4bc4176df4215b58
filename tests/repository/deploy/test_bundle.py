"""Tests the packages for the Operator Lifecycle Manager with the rules of its validators."""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest
import yaml
from deploy.packages import bundle, catalog, changelog, publishing
from deploy.packages.bundle import ALIAS, FORMER, LEADER_WORKER_SET, PACKAGES, Package, Publication
from deploy.packages.operatordeployment import OperatorSettings, build_operator
from testkit.repository import ROOT
from tests.olmgraph import resolve

import leaderworkerset
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.metadata import OLDEST_KUBERNETES
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorcrd import operator_crd
from leaderworkerset.operator.operatorprocess import registry
from leaderworkerset.operator.verbosity import Verbosity

CHOSEN = OperatorSettings(
    image="example.com/operator@sha256:01",
    operand_image="example.com/lws@sha256:02",
    command_image="example.com/command@sha256:03",
)
RELEASE = Publication()
KINDS = registry(OperatorPlace(namespace="x", image="", version="", declared=MANAGED), Verbosity())
each = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)


def version(package: Package, publication: Publication = RELEASE) -> JSONObject:
    return bundle.version(package, KINDS, MANAGED, CHOSEN, publication)


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


def test_page_chart_and_version_name_the_same_kubernetes() -> None:
    """The minimum supported Kubernetes version is the same everywhere (R-OP-55)."""
    chart = yaml.safe_load((ROOT / "deploy/helm/lws/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={OLDEST_KUBERNETES}-0"
    oldest = OLDEST_KUBERNETES.removesuffix(".0")
    assert f"earlier than {oldest}" in (ROOT / "docs/how-to/install.md").read_text()


def test_names_equal_those_of_the_contract() -> None:
    """The first channel is the default one of bundle and catalog (R-OP-37, R-OP-38)."""
    assert version(LEADER_WORKER_SET)["metadata"]["name"] == f"leader-worker-set.v{leaderworkerset.__version__}"
    assert LEADER_WORKER_SET.channels == ("stable-v1.0",)
    assert modes(LEADER_WORKER_SET) == {
        "OwnNamespace": True,
        "SingleNamespace": False,
        "MultiNamespace": False,
        "AllNamespaces": False,
    }
    assert "lws" in version(LEADER_WORKER_SET)["spec"]["displayName"]


def test_version_describes_the_operator() -> None:
    """Description, examples and metadata of the version are complete (R-OP-37)."""
    found = version(LEADER_WORKER_SET)
    annotations, spec = found["metadata"]["annotations"], found["spec"]
    assert (spec["version"], spec["maturity"], spec["minKubeVersion"]) == (RELEASE.version, "alpha", "1.27.0")
    assert "leader-worker-set" in spec["keywords"]
    assert [one["name"] for one in spec["relatedImages"]] == ["lws", "lws-command", "lws-operator"]
    machines = {name for name in meta.labels(found) if name.startswith("operatorframework.io/arch.")}
    assert machines == {f"operatorframework.io/arch.{name}" for name in ("amd64", "arm64")}
    assert annotations["operatorframework.io/cluster-monitoring"] == "true"
    assert annotations["operatorframework.io/suggested-namespace"] == "openshift-lws-operator"
    assert annotations["console.openshift.io/operator-monitoring-default"] == "true"
    (owned,) = spec["customresourcedefinitions"]["owned"]
    assert (owned["kind"], owned["version"]) == ("LeaderWorkerSetOperator", "v1")
    (deployment,) = spec["install"]["spec"]["deployments"]
    accounts = {
        one["serviceAccountName"]
        for name in ("permissions", "clusterPermissions")
        for one in spec["install"]["spec"][name]
    }
    assert accounts == {deployment["name"]} == {"openshift-lws-operator"}
    infra = json.loads(annotations["alm-examples"])[1]["spec"]["nodePlacement"]
    assert infra["nodeSelector"] == {"node-role.kubernetes.io/infra": ""}


@each
def test_bundle_has_the_version_and_the_operator_definition(package: Package) -> None:
    """The bundle does not contain the CRDs of the operand or of other packages (R-OP-36)."""
    names = [f"{meta.name(obj)}.{obj['kind'].lower()}" for obj in bundle.beside(RELEASE)]
    assert names == [
        "leaderworkersetoperators.operator.openshift.io.customresourcedefinition",
        "openshift-lws-operator-metrics.service",
        "openshift-lws-operator.servicemonitor",
        "openshift-lws-operator.prometheusrule",
    ]
    folder = ROOT / "deploy/olm" / package.name
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "bundle.Containerfile",
        f"manifests/{package.name}.clusterserviceversion.yaml",
        *(f"manifests/{name}.yaml" for name in names),
        "metadata/annotations.yaml",
        "metadata/properties.yaml",
    }
    annotations = bundle.metadata(package)["annotations"]
    assert annotations["operators.operatorframework.io.bundle.mediatype.v1"] == "registry+v1"
    assert annotations["operators.operatorframework.io.bundle.package.v1"] == package.name


@each
def test_cert_manager_is_mentioned_but_not_a_dependency(package: Package) -> None:
    """Bundles and catalogs do not depend on cert-manager.

    The version description contains the prerequisite (R-OP-40).
    """
    blobs = catalog.blobs(package, version(package), "example.com/bundle@sha256:03")
    types = {one["type"] for blob in blobs for one in blob.get("properties", [])}
    assert types == {"olm.gvk", "olm.package", "olm.csv.metadata", "olm.manifests.optional"}
    assert "required" not in version(package)["spec"]["customresourcedefinitions"]
    assert "install cert-manager" in version(package)["spec"]["description"]


def test_recipe_has_the_published_names() -> None:
    """The package lws-operator is in the channel stable, in a namespace that serves all (R-OP-58, R-OP-83 (D2))."""
    assert (ALIAS.name, ALIAS.channels) == ("lws-operator", ("stable",))
    assert modes(ALIAS)["AllNamespaces"]
    (deployment,) = version(ALIAS)["spec"]["install"]["spec"]["deployments"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == {"name": "openshift-lws-operator", "app.kubernetes.io/name": "lws-operator"}


@each
def test_console_metadata_is_complete(package: Package) -> None:
    """The OpenShift console reads these fields (R-OP-70)."""
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
        "operators.openshift.io/must-gather-image",
    ):
        assert annotations[name]
    samples = json.loads(annotations["alm-examples"])
    assert [one["metadata"]["name"] for one in samples] == ["cluster", "cluster"]
    assert json.loads(annotations["operatorframework.io/initialization-resource"]) == samples[0]
    assert samples[0]["spec"] == {"managementState": "Managed", "logLevel": "Normal", "operatorLogLevel": "Normal"}
    assert spec["icon"][0]["mediatype"] == "image/svg+xml"
    assert set(annotations["categories"].split(", ")) <= {"AI/Machine Learning", "Integration & Delivery"}
    assert all(isinstance(value, str) for value in annotations.values())
    features = {name: annotations[f"features.operators.openshift.io/{name}"] for name in bundle.FEATURES}
    assert {name for name, value in features.items() if value == "true"} == {"disconnected", "tls-profiles"}


@each
def test_every_field_of_the_spec_is_described(package: Package) -> None:
    """The scorecard requires descriptors (R-OP-69, R-OP-82)."""
    (owned,) = version(package)["spec"]["customresourcedefinitions"]["owned"]
    root = operator_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert {one["path"] for one in owned["specDescriptors"]} == set(root["spec"]["properties"])
    assert {one["path"] for one in owned["statusDescriptors"]} <= set(root["status"]["properties"])
    assert owned["resources"]
    states = root["spec"]["properties"]["managementState"]["pattern"]
    (offered,) = [one["x-descriptors"] for one in owned["specDescriptors"] if one["path"] == "managementState"]
    assert all(re.fullmatch(states, name.rsplit(":", 1)[1]) for name in offered)
    (shown,) = [one["x-descriptors"] for one in owned["statusDescriptors"] if one["path"] == "conditions"]
    assert shown == ["urn:alm:descriptor:io.kubernetes.conditions"]


@each
def test_every_image_is_in_the_related_images(package: Package) -> None:
    """Images of containers and of RELATED_IMAGE variables can be mirrored (R-OP-70)."""
    spec = version(package)["spec"]
    (deployment,) = spec["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    named = {container["image"], *(one["value"] for one in container["env"] if one["name"].startswith("RELATED_IMAGE"))}
    must_gather = version(package)["metadata"]["annotations"]["operators.openshift.io/must-gather-image"]
    assert named | {must_gather} == {one["image"] for one in spec["relatedImages"]}


@each
def test_operator_has_every_permission_that_it_grants(package: Package) -> None:
    """An API server rejects roles with more permissions than their creator (R-OP-29)."""
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
def test_olm_installs_the_objects_of_the_manifests(package: Package) -> None:
    """All packages have one source (R-OP-56)."""
    objects = {kind.kind: obj for kind, obj in build_operator(KINDS, MANAGED, CHOSEN)}
    (deployment,) = version(package)["spec"]["install"]["spec"]["deployments"]
    assert deployment["spec"] == objects["Deployment"]["spec"]
    definition, service, *_ = bundle.beside(RELEASE)
    assert definition["spec"] == objects["CustomResourceDefinition"]["spec"]
    assert service["spec"] == objects["Service"]["spec"]
    assert meta.namespace(service) == ""


def test_operator_is_scraped_if_prometheus_is_installed() -> None:
    """Its ServiceMonitor selects its Service.

    Monitor and alerts are optional on clusters without these kinds (R-OP-76).
    """
    _, service, monitor, rule = bundle.beside(RELEASE)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= meta.labels(service).items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert [one["alert"] for one in rule["spec"]["groups"][0]["rules"]] == ["LWSOperatorDown", "LWSOperatorErrors"]
    (optional,) = bundle.properties()["properties"]
    named = [(obj["apiVersion"].split("/")[0], obj["kind"], meta.name(obj)) for obj in (monitor, rule)]
    assert [tuple(one.values()) for one in optional["value"]["manifests"]] == named


def test_release_names_its_repository() -> None:
    """Releases set the annotation `repository` (R-OP-70)."""
    assert "repository" not in version(ALIAS)["metadata"]["annotations"]
    published = version(ALIAS, Publication(repository="https://git.example.com/lws"))
    assert published["metadata"]["annotations"]["repository"] == "https://git.example.com/lws"


@each
def test_no_permission_is_a_wildcard(package: Package) -> None:
    """Roles list groups, resources and verbs (R-OP-32)."""
    spec = version(package)["spec"]["install"]["spec"]
    rules = granted(rule for part in (*spec["clusterPermissions"], *spec["permissions"]) for rule in part["rules"])
    assert not [one for one in rules if "*" in one]


@each
def test_annotations_and_labels_of_the_bundle_agree(package: Package) -> None:
    """The image has the annotations of the bundle as labels (R-OP-36)."""
    annotations = bundle.metadata(package)["annotations"]
    assert bundle.containerfile(package).startswith("FROM scratch\n")
    labels = dict(re.findall(r"^LABEL (\S+)=(\S+)$", bundle.containerfile(package), re.MULTILINE))
    assert labels == annotations
    assert annotations["operators.operatorframework.io.bundle.channel.default.v1"] in package.channels


@each
def test_subscription_matches_the_catalog(package: Package) -> None:
    """The files agree in source, package, channel, namespace and operator group (R-OP-64, AT-000-2)."""
    folder = ROOT / "deploy/olm"
    source = yaml.safe_load((folder / "catalogsource.yaml").read_text())
    *others, asked = yaml.safe_load_all((folder / f"subscriptions/{package.name}.yaml").read_text())
    assert asked["spec"] == {
        "source": meta.name(source),
        "sourceNamespace": meta.namespace(source),
        "name": package.name,
        "channel": package.channels[0],
        "installPlanApproval": "Automatic",
    }
    assert source["spec"]["image"] == catalog.IMAGE
    targets = [one["spec"]["targetNamespaces"] for one in others if one["kind"] == "OperatorGroup"]
    assert targets == ([] if modes(package)["AllNamespaces"] else [[meta.namespace(asked)]])


@each
def test_catalog_upgrades_to_the_newest_version(package: Package) -> None:
    """A channel has one head, and each entry has a bundle and a range. There is a default channel.

    The rules are R-OP-38, R-OP-39 and R-OP-71.
    """
    blobs = catalog.blobs(package, version(package), "example.com/bundle@sha256:03")
    by_schema: dict[str, list[JSONObject]] = {}
    for blob in blobs:
        by_schema.setdefault(blob["schema"], []).append(blob)
    (head,) = by_schema["olm.package"]
    channels = {one["name"]: one for one in by_schema["olm.channel"]}
    assert head["defaultChannel"] in channels
    assert all(
        entry["skipRange"] == f">=0.0.1 <{RELEASE.version}" for one in channels.values() for entry in one["entries"]
    )
    names = {one["name"] for one in by_schema["olm.bundle"]}
    assert {entry["name"] for one in channels.values() for entry in one["entries"]} == names
    (one,) = by_schema["olm.bundle"]
    kinds = {entry["type"] for entry in one["properties"]}
    assert {"olm.package", "olm.gvk", "olm.csv.metadata"} <= kinds
    assert {CHOSEN.image, CHOSEN.operand_image, CHOSEN.command_image, one["image"]} == {
        i["image"] for i in one["relatedImages"]
    }


def catalog_of(release: str, package: Package) -> dict[str, JSONObject]:
    """Return the blobs of a release catalog by schema."""
    found = version(package, Publication(version=release))
    return {blob["schema"]: blob for blob in catalog.blobs(package, found, "example.com/bundle@sha256:03")}


@each
@pytest.mark.parametrize("old", ["0.1.0", FORMER, "0.2.0", "0.3.9"])
def test_newer_catalog_upgrades_every_older_version(package: Package, old: str) -> None:
    """The version of all bundles before 0.3.0 is included (R-OP-39, R-OP-71)."""
    before, after = catalog_of(old, package), catalog_of("0.4.0", package)
    installed = before["olm.bundle"]["name"]
    assert resolve(after["olm.channel"], installed) == f"{package.name}.v0.4.0"
    assert (before["olm.channel"]["name"], before["olm.package"]) == (
        after["olm.channel"]["name"],
        after["olm.package"],
    )
    own = {one["type"]: one["value"] for one in after["olm.bundle"]["properties"]}
    assert own["olm.package"]["version"] == "0.4.0"


@each
@pytest.mark.parametrize("same_or_newer", ["0.4.0", "0.5.0", "1.0.1"])
def test_catalog_never_downgrades(package: Package, same_or_newer: str) -> None:
    assert resolve(catalog_of("0.4.0", package)["olm.channel"], f"{package.name}.v{same_or_newer}") is None


def test_release_does_not_skip_itself() -> None:
    assert "skips" not in catalog.edges(ALIAS, FORMER)


def test_release_has_the_date_of_the_changelog() -> None:
    """`createdAt` is the date in CHANGELOG.md."""
    _, moment = changelog.released((ROOT / "CHANGELOG.md").read_text(), RELEASE.version)
    created = datetime.fromisoformat(publishing.published().created)
    assert created.timestamp() == moment
