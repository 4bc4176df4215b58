"""Tests the `lws` diagnoses while nodes are unschedulable, and while no manager is running."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.node import daemons, images, product, programs
from tests.node.cluster import NODES, NodeCluster
from tests.node.objects import leaderworkerset, pod
from tests.node.place import Place
from tests.node.situations import sampling
from tests.node.situations.failing import FAILING

from leaderworkerset.api.metadata import MANAGER


def diagnosis(place: Place, code: str, *words: str) -> str:
    """Wait until the diagnosis contains a cause and these strings. Return the diagnosis as JSON."""

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


PRESSURES = {"memory": "memory.available", "disk space": "nodefs.available"}


@contextmanager
def pressed(nodes: NodeCluster, signal: str) -> Iterator[None]:
    """Let the kubelet of the second node see too little of a resource; it removes pods, and images that no pod uses."""
    machine = nodes.machines[1]
    machine.kill("kubelet")
    evicting = {"evictionHard": {signal: "99%"}, "evictionPressureTransitionPeriod": "5s"}
    daemons.start_kubelet(machine, nodes.node_assets, nodes.pki, **evicting)
    try:
        yield
    finally:
        machine.kill("kubelet")
        daemons.load(machine, nodes.node_assets, images.archives(nodes.node_assets, programs.say))
        daemons.start_kubelet(machine, nodes.node_assets, nodes.pki)
        nodes.kubectl("wait", f"node/{machine.name}", "--for=condition=Ready", "--timeout=3m")
        product.await_managers(nodes)


@pytest.mark.long
@pytest.mark.parametrize("resource", PRESSURES)
def test_explain_names_the_pressure_of_a_node(place: Place, resource: str) -> None:
    pinned = leaderworkerset("web", pod(nodeSelector={"kubernetes.io/hostname": "node2"}))
    place.ready(pinned, 2)
    with pressed(place.cluster, PRESSURES[resource]):
        # Pods are evicted until their replacements wait for a node without the taint of this condition.
        codes = set()

        def closed() -> bool:
            (item,) = json.loads(place.ended("explain", "web", "--output=json").stdout)["items"]
            codes.add(item["code"])
            return bool(item["code"] == "LWS-E118" and f"is low on {resource}" in json.dumps(item))

        place.until(closed, f"explain names the condition, not only {codes}")
        assert codes <= {None, "LWS-E054", "LWS-E080", "LWS-E081", "LWS-E091", "LWS-E118"}
        assert "toleration" not in place.ended("explain", "web").stdout
    place.await_ready("web", 1, 2)


def test_explain_names_a_node_that_is_not_ready(place: Place) -> None:
    pinned = leaderworkerset("web", pod(nodeSelector={"kubernetes.io/hostname": "node2"}))
    place.ready(pinned, 2)
    place.cluster.machines[1].kill("kubelet")
    place.cluster.kubectl("wait", "--for=condition=Ready=Unknown", "node/node2", "--timeout=120s")
    diagnosis(place, "LWS-E051", "node2")


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
