"""Tests where a moved group fits: requests, labels, taints, volumes, priorities and exclusive topology."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders
from tests.builders import node

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import labels
from localkube.controllers.scheduler.capacity import ClusterState
from localkube.controllers.scheduler.decision import Placement, decide
from localkube.controllers.scheduler.podinfo import read_pod
from lwsctl.model.leaderworkerset import view
from lwsctl.rollout.relocation import ClusterFacts, Relocation, relocate

RACK = "example.com/rack"


def on(pod: JSONObject, name: str, cpu: str = "1", **spec: Any) -> JSONObject:
    """Return a pod that runs on a node."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return pod | {"spec": {"nodeName": name, "containers": containers, **spec}}


def foreign(name: str, at: str, cpu: str = "1", **spec: Any) -> JSONObject:
    """Return a pod without a group."""
    metadata = {"name": name, "namespace": "other", "uid": name}
    return on({"metadata": metadata, "status": {"phase": "Running"}}, at, cpu, **spec)


def group_of(lws: JSONObject, *nodes: str, index: int = 0, **spec: Any) -> list[JSONObject]:
    """Return the pods of a group on nodes. The leader is on the first node."""
    leader = builders.leader_pod(lws, index)
    workers = [builders.worker_pod(leader, number) for number in range(1, len(nodes))]
    return [on(pod, at, **spec) for pod, at in zip([leader, *workers], nodes, strict=True)]


def moved(
    pods: Sequence[JSONObject],
    nodes: Sequence[JSONObject],
    *,
    off: Collection[str],
    others: Sequence[JSONObject] = (),
    lws: JSONObject | None = None,
    volumes: Mapping[ObjectKey, JSONObject] | None = None,
) -> Relocation:
    """Return the nodes to which the first group moves."""
    lws = lws or builders.leaderworkerset_object(replicas=1, size=2)
    (group, *_) = view(lws, pods).groups
    return relocate(lws, group, off, ClusterFacts(nodes=nodes, pods=[*pods, *others], volumes=volumes or {}))


LWS = builders.leaderworkerset_object(replicas=1, size=2)
EXCLUSIVE = builders.leaderworkerset_object(
    replicas=2, size=2, metadata={"annotations": {labels.EXCLUSIVE_TOPOLOGY: RACK}}
)
NODES = [node("a"), node("b"), node("c")]


def test_group_goes_to_nodes_with_space() -> None:
    assert moved(group_of(LWS, "a", "a"), NODES, off={"a"}).pods == {"b": 2}
    full = foreign("x", "b", cpu="4")
    assert str(moved(group_of(LWS, "a", "b"), NODES, off={"a"}, others=[full])) == "it fits on c (2 pods)"


def test_own_pods_leave_their_space_on_the_other_nodes() -> None:
    pods = group_of(LWS, "a", "b", cpu="3")
    assert moved(pods, [node("a"), node("b", cpu="6")], off={"a"}).pods == {"b": 2}


@pytest.mark.parametrize(
    ("pods", "nodes", "off", "why"),
    [
        pytest.param(group_of(LWS, "a", "b"), NODES[:2], {"a", "b"}, "no other node exists", id="spans all nodes"),
        pytest.param(
            group_of(LWS, "a", "a", nodeSelector={"kubernetes.io/hostname": "a"}),
            NODES,
            {"a"},
            "node selector, affinity or volume: b, c",
            id="pinned",
        ),
        pytest.param(
            group_of(LWS, "a", "a"),
            [node("a"), node("b", taints=[{"key": "team", "effect": "NoSchedule"}]), node("c", unschedulable=True)],
            {"a"},
            "taint: b, c",
            id="tainted",
        ),
        pytest.param(
            group_of(LWS, "a", "a", cpu="3"),
            [node("a", "8"), *NODES[1:], node("d", "2")],
            {"a", "c"},
            "cpu: d",
            id="short",
        ),
        pytest.param(group_of(LWS, "a", "a", cpu="9"), NODES, {"a"}, "cpu: b, c", id="no node is large enough"),
    ],
)
def test_reason_states_what_other_nodes_lack(
    pods: list[JSONObject], nodes: list[JSONObject], off: set[str], why: str
) -> None:
    assert moved(pods, nodes, off=off).obstacle == why


def test_reason_regards_the_pod_that_fits_nowhere() -> None:
    """The leader fits on node b, and the worker is pinned to its node."""
    leader, worker = group_of(LWS, "a", "a")
    worker["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "a"}
    assert moved([leader, worker], NODES[:2], off={"a"}).obstacle == "node selector, affinity or volume: b"


def test_rank_without_a_pod_needs_the_same_as_its_neighbour() -> None:
    lws = builders.leaderworkerset_object(replicas=1, size=3)
    pods = group_of(lws, "a", "a", cpu="2")
    assert moved(pods, NODES[:2], off={"a"}, lws=lws).obstacle
    assert moved(pods, NODES, off={"a"}, lws=lws).pods == {"b": 2, "c": 1}


def test_bound_volume_keeps_a_group_on_its_node() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]}]
    volumes = {
        ObjectKey(builders.NAMESPACE, "data-web-0"): {
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
        }
    }
    leader, worker = group_of(LWS, "a", "a")
    leader["spec"]["volumes"] = [claim]
    assert moved([leader, worker], NODES, off={"a"}, volumes=volumes).obstacle.endswith("volume: b, c")
    assert not moved([leader, worker], NODES, off={"b"}, volumes=volumes).obstacle
    leader["spec"]["volumes"], worker["spec"]["volumes"] = [], [claim]
    deleted = builders.leaderworkerset_object(
        size=2, template={"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}
    )
    assert not moved([leader, worker], NODES, off={"a"}, volumes=volumes, lws=deleted).obstacle


def test_pods_with_a_lower_priority_give_way() -> None:
    low = foreign("low", "b", cpu="4", priority=-5)
    found = moved(group_of(LWS, "a", "a"), NODES[:2], off={"a"}, others=[low])
    assert str(found) == "it fits on b (2 pods) after preemption of pods with a lower priority"
    never = group_of(LWS, "a", "a", preemptionPolicy="Never")
    assert moved(never, NODES[:2], off={"a"}, others=[low]).obstacle == "cpu: b"


def test_exclusive_group_needs_a_domain_without_a_group() -> None:
    racks = [node("a", labels={RACK: "r1"}), node("b", labels={RACK: "r2"}), node("c", labels={RACK: "r3"})]
    first = group_of(EXCLUSIVE, "a", "a")
    first[1]["spec"]["nodeSelector"] = {RACK: "r1"}  # as the controller sets it
    second = group_of(EXCLUSIVE, "b", "b", index=1)
    assert moved([*first, *second], racks, off={"a"}, lws=EXCLUSIVE).pods == {"c": 2}
    taken = moved([*first, *second], racks[:2], off={"a"}, lws=EXCLUSIVE)
    assert taken.obstacle == f"every other {RACK} domain already has a group"


def test_exclusive_group_does_not_span_domains() -> None:
    racks = [node("a", labels={RACK: "r1"}), node("b", "1", labels={RACK: "r2"}), node("c", "1", labels={RACK: "r3"})]
    found = moved(group_of(EXCLUSIVE, "a", "a"), racks, off={"a"}, lws=EXCLUSIVE)
    assert found.obstacle == "too few nodes have enough space, or their domains are in use"


SIZES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@given(
    sizes=SIZES, used=st.lists(st.integers(0, 4), min_size=4, max_size=4), cpu=st.integers(1, 3), selects=st.booleans()
)
def test_group_that_the_scheduler_places_is_never_rejected(
    sizes: list[int], used: list[int], cpu: int, *, selects: bool
) -> None:
    """The embedded scheduler, which is compared with kube-scheduler, evaluates all pods of the group."""
    nodes = [node(f"n{index}", str(size), labels={RACK: f"r{index % 2}"}) for index, size in enumerate(sizes)]
    pods = group_of(LWS, "n0", "n0", cpu=str(cpu), nodeSelector={RACK: "r1"} if selects else {})
    others = [foreign(f"x{index}", f"n{index}", cpu=str(used[index])) for index in range(1, len(nodes))]
    cluster = ClusterState()
    for obj in nodes[1:]:
        cluster.put_node(obj)
    for other in others:
        cluster.place(read_pod(other), other["spec"]["nodeName"])
    placed = []
    for pod in pods:
        decision = decide(cluster, read_pod(pod))
        if isinstance(decision, Placement):
            cluster.place(read_pod(pod), decision.node)
            placed.append(meta.name(pod))
    refused = moved(pods, nodes, off={"n0"}, others=others).obstacle
    assert len(placed) < len(pods) or not refused
