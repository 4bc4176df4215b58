"""Tests kubectl commands for resources, versions, explanations, and the current user."""

import pytest
from tests.controlplane import build
from tests.kubernetes.kubectl.conftest import Place


def test_cluster_reports_its_resources_and_version(cluster: Place) -> None:
    resources = cluster.run("api-resources", "-o", "name").split()
    assert {"pods", "statefulsets.apps", "leaderworkersets.leaderworkerset.x-k8s.io", "leases.coordination.k8s.io"} <= {
        *resources
    }
    assert "lws" in cluster.run("api-resources", "--api-group=leaderworkerset.x-k8s.io")
    assert {"v1", "apps/v1", "leaderworkerset.x-k8s.io/v1"} <= {*cluster.run("api-versions").split()}
    version = build.CHOSEN if cluster.name == "kubernetes" else build.DEFAULT
    assert f"Server Version: v{version}" in cluster.run("version")
    assert "Kubernetes control plane" in cluster.run("cluster-info")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lws", "LeaderWorkerSet"),
        ("lws.spec", "leaderWorkerTemplate"),
        ("lws.spec.replicas", "replicas <integer>"),
        ("lws.spec.leaderWorkerTemplate.workerTemplate.spec.containers.image", "image <string>"),
        ("pod.spec.containers", "imagePullPolicy"),
        ("sts.spec.updateStrategy", "rollingUpdate"),
    ],
)
def test_fields_are_explained(cluster: Place, path: str, expected: str) -> None:
    assert expected in cluster.run("explain", path)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (
            "pod",
            [
                "A Pod is a group of containers that share",
                "ELSEWHERE",
                "spec\t<PodSpec>",
                "The desired state.",
            ],
        ),
        ("pod.spec.containers", ["Container of the Kubernetes API.", "ELSEWHERE", "ports\t<[]ContainerPort>"]),
        ("sts.spec.template", ["The desired state.", "PodTemplateSpec of the Kubernetes API.", "ELSEWHERE"]),
        ("svc.spec.ports", ["targetPort\t<IntOrString>", "ELSEWHERE"]),
    ],
)
def test_embedded_cluster_refers_to_external_descriptions(cluster: Place, path: str, told: list[str]) -> None:
    if cluster.name != "embedded":
        pytest.skip("kube-apiserver describes them itself")
    elsewhere = "For its fields, see https://kubernetes.io/docs/reference/kubernetes-api/"
    text = " ".join(cluster.run("explain", path).split())
    for words in told:
        assert " ".join(words.replace("ELSEWHERE", elsewhere).split()) in text


def test_leaderworkersets_are_described(cluster: Place) -> None:
    """On Kubernetes, CRDs have descriptions after `lws install --crd=full`, for which there is a separate test."""
    if cluster.name != "embedded":
        pytest.skip("the definition is installed without descriptions")
    assert "A LeaderWorkerSet runs groups of pods" in cluster.run("explain", "lws")
    spec = cluster.run("explain", "lws.spec")
    assert "The number of groups" in spec
    assert "enum: LeaderCreated, LeaderReady" in spec
    assert "<no description>" not in spec
    for path in ("leaderWorkerTemplate", "rolloutStrategy.rollingUpdateConfiguration", "networkConfig"):
        assert "<no description>" not in cluster.run("explain", f"lws.spec.{path}")
    assert "<no description>" not in cluster.run("explain", "lws.status")


def test_administrator_has_all_permissions(cluster: Place) -> None:
    assert cluster.run("auth", "can-i", "create", "pods").strip() == "yes"
    assert cluster.run("auth", "can-i", "delete", "lws").strip() == "yes"
    assert "system:masters" in cluster.run("auth", "whoami")


def test_nodes_are_cordoned_and_uncordoned(cluster: Place) -> None:
    node = cluster.run("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    assert "cordoned" in cluster.run("cordon", node)
    assert "SchedulingDisabled" in cluster.run("get", "node", node)
    assert "uncordoned" in cluster.run("uncordon", node)
    assert "Conditions" in cluster.run("describe", "node", node)
