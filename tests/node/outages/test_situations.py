"""Tests the diagnoses of `lws` while nodes do not accept pods, and while no manager runs."""

import json

import pytest
from tests.node import product
from tests.node.cluster import NODES, NodeCluster
from tests.node.objects import leaderworkerset, pod
from tests.node.place import Place
from tests.node.situations import sampling
from tests.node.situations.failing import FAILING

from leaderworkerset.api.metadata import MANAGER


def diagnosis(place: Place, code: str, *words: str) -> str:
    """Wait until the diagnosis contains a cause and some strings. Return it as JSON."""

    def named() -> str:
        item = json.loads(place.ended("explain", "web", "--output=json").stdout)["items"][0]
        text = json.dumps(item)
        assert item["verdict"] not in {"healthy", "complete"}, text
        return text if item["code"] == code and all(word in text for word in words) else ""

    return place.until(named, f"{code} with {words}")


def test_explain_names_cordoned_nodes(place: Place) -> None:
    place.cluster.kubectl("cordon", *NODES)
    place.apply(leaderworkerset("web", pod()))
    diagnosis(place, "LWS-E043", "uncordon")
    assert place.ended("wait", "web", "--fail-fast", "--timeout=60s").returncode == 1


def test_explain_names_a_taint(place: Place) -> None:
    place.cluster.kubectl("taint", "node", *NODES, "team=other:NoSchedule")
    place.apply(leaderworkerset("web", pod()))
    diagnosis(place, "LWS-E039", "team")
    assert place.ended("wait", "web", "--fail-fast", "--timeout=60s").returncode == 1


@pytest.mark.long
def test_causes_of_crashes_are_true_at_every_moment(nodes: NodeCluster) -> None:
    """The crashing containers run alone, because busy kubelets write their events late."""
    sampling.check(nodes, FAILING)


@pytest.mark.long
def test_explain_names_managers_scaled_to_0(place: Place) -> None:
    place.ready(leaderworkerset("web", pod()), 2)
    with product.no_managers(place.cluster):
        place.kubectl("delete", "pod", "web-0", "web-0-1", "--wait=false")
        text = diagnosis(place, "LWS-E003", f"scale deployment {MANAGER}")
        assert "delete the configuration" not in text
        assert "0 of 0" in place.ended("doctor", "--no-machine").stdout
        assert place.ended("doctor", "--no-machine").returncode
    place.await_ready("web", 1, 2)
