"""Tests the detection of Services whose selector matches no pod in the same manifests."""

from typing import Any

import pytest

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.cli.reading.manifests import Document
from lwsctl.cli.reading.serviceselectors import warn_about_services

WARNED = (
    "warning: web.yaml:1: service/web: spec.selector {} does not match any pod of these manifests; correct it, "
    "or add the labels to the pod templates"
)


def documents(*objects: JSONObject) -> list[Document]:
    return [Document("web.yaml", 1, obj) for obj in objects]


def service(namespace: str = "", **selector: str) -> JSONObject:
    return {"kind": "Service", "metadata": {"name": "web", "namespace": namespace}, "spec": {"selector": selector}}


def pods(**own: str) -> JSONObject:
    return {"metadata": {"labels": own}}


def lws(namespace: str = "", **templates: Any) -> JSONObject:
    return {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "vllm", "namespace": namespace},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": {}} | templates},
    }


@pytest.mark.parametrize(
    ("selector", "unmatched"),
    [
        ({"app": "vllm"}, []),
        ({"role": "leader", labels.NAME: "vllm"}, []),
        ({labels.NAME: "vllm", labels.WORKER_INDEX: "0"}, []),
        ({"app": "vllm", "apps.kubernetes.io/pod-index": "0"}, []),
        ({"app": "vlm"}, ["app=vlm"]),
        ({"app": "vllm", "role": "leader"}, ["app=vllm,role=leader"]),
        ({labels.NAME: "web"}, [f"{labels.NAME}=web"]),
    ],
    ids=str,
)
def test_selector_that_matches_no_rank_is_named(selector: dict[str, str], unmatched: list[str]) -> None:
    given = lws(leaderTemplate=pods(role="leader"), workerTemplate=pods(app="vllm"))
    assert list(warn_about_services(documents(service(**selector), given))) == [*map(WARNED.format, unmatched)]


@pytest.mark.parametrize(("where", "warned"), [("prod", 0), ("", 0), ("test", 1)])
def test_pods_of_a_different_namespace_are_not_selected(where: str, warned: int) -> None:
    given = lws("prod", workerTemplate=pods(app="vllm"))
    assert len(list(warn_about_services(documents(service(where, app="vllm"), given)))) == warned


@pytest.mark.parametrize(
    "others",
    [
        [],
        [lws(), {"kind": "Deployment", "metadata": {"name": "router"}}],
        [lws(), {"kind": "DisaggregatedSet", "metadata": {"name": "split"}}],
    ],
    ids=["no LeaderWorkerSet", "a Deployment", "a DisaggregatedSet"],
)
def test_selector_has_no_warning_when_other_pods_may_match(others: list[JSONObject]) -> None:
    assert list(warn_about_services(documents(service(app="router"), *others))) == []


def test_service_without_a_selector_has_no_warning() -> None:
    assert (
        list(warn_about_services(documents({"kind": "Service", "metadata": {"name": "web"}, "spec": {}}, lws()))) == []
    )
