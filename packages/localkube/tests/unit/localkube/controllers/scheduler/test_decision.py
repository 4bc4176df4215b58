"""Tests pod placement, and the message if no node is suitable."""

from collections.abc import Sequence
from typing import Any

import pytest
from testkit.objects import merge
from tests.unit.localkube.controllers.objects import build_node, build_pod

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.scheduler.capacity import ClusterState
from localkube.controllers.scheduler.decision import Decision, Placement, Unschedulable, decide
from localkube.controllers.scheduler.podinfo import read_pod
from localkube.controllers.scheduler.predicates import Cause

RACKS = [build_node(f"node-{number}", {"rack": f"r{number // 2}"}) for number in range(4)]


def cluster_of(nodes: Sequence[JSONObject], running: Sequence[tuple[JSONObject, str]] = ()) -> ClusterState:
    """Build a cluster with nodes and running pods."""
    cluster = ClusterState()
    for node in nodes:
        cluster.put_node(node)
    for placed, name in running:
        cluster.place(read_pod(placed), name)
    return cluster


def pod(name: str = "p", labels: dict[str, str] | None = None, **spec: Any) -> JSONObject:
    """Build a pod with labels and spec fields."""
    return build_pod(name, {"metadata": {"labels": labels or {}}, "spec": spec})


def asking(name: str = "p", **amounts: str) -> JSONObject:
    """Build a pod with resource requests."""
    listed = {resource.replace("_", "."): amount for resource, amount in amounts.items()}
    return pod(name, containers=[{"name": "main", "resources": {"requests": listed}}])


def refused(decision: Decision) -> str:
    """Return the message for an unschedulable pod."""
    assert isinstance(decision, Unschedulable), decision
    return decision.message


TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
TAINTED = merge(build_node("node-0"), {"spec": {"taints": [TAINT]}})
CORDONED = merge(build_node("node-0"), {"spec": {"unschedulable": True}})
PORT = [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]
REQUIRED_NODE: dict[str, Any] = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}]
            }
        }
    }
}


@pytest.mark.parametrize(
    ("node", "wanted", "reason"),
    [
        pytest.param(CORDONED, pod(), "1 node(s) were unschedulable", id="cordoned"),
        pytest.param(TAINTED, pod(), "1 node(s) had untolerated taint {dedicated: gpu}", id="tainted"),
        pytest.param(
            build_node("node-0"),
            pod(nodeSelector={"rack": "r1"}),
            "1 node(s) didn't match Pod's node affinity/selector",
            id="selector",
        ),
        pytest.param(
            build_node("node-0"),
            pod("p", {}, **REQUIRED_NODE),
            "1 node(s) didn't match Pod's node affinity/selector",
            id="affinity",
        ),
        pytest.param(build_node("node-0"), asking(cpu="9", memory="1Ti"), "1 Insufficient cpu, 1 Insufficient memory"),
        pytest.param(build_node("node-0", pods="0"), pod(), "1 Too many pods", id="pods"),
        pytest.param(
            build_node("node-0"), asking(**{"nvidia_com/gpu": "1"}), "1 Insufficient nvidia.com/gpu", id="gpu"
        ),
    ],
)
def test_refusal_names_the_reason_of_a_node(node: JSONObject, wanted: JSONObject, reason: str) -> None:
    decision = decide(cluster_of([node]), read_pod(wanted))
    assert refused(decision) == f"0/1 nodes are available: {reason}."


def test_reasons_are_counted_over_all_nodes() -> None:
    nodes = [build_node("a", {}, **{"nvidia.com/gpu": "8"}), build_node("b"), CORDONED]
    wanted = read_pod(asking(**{"nvidia_com/gpu": "9"}))
    decision = decide(cluster_of(nodes), wanted)
    assert refused(decision) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu."
    )
    assert isinstance(decision, Unschedulable)
    assert decision.causes == {Cause.NODE, Cause.RESOURCES}


def test_refusal_without_nodes_is_explained() -> None:
    assert refused(decide(ClusterState(), read_pod(pod()))) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists"},
        {"operator": "Exists"},
    ],
)
def test_tolerated_taints_are_ignored(toleration: JSONObject) -> None:
    assert decide(cluster_of([TAINTED]), read_pod(pod(tolerations=[toleration]))) == Placement("node-0")


def test_requests_of_running_pods_are_subtracted() -> None:
    cluster = cluster_of([build_node("node-0")], [(asking("first", cpu="5"), "node-0")])
    second = read_pod(asking("second", cpu="5"))
    assert refused(decide(cluster, second)) == "0/1 nodes are available: 1 Insufficient cpu."
    cluster.remove(read_pod(asking("first")).uid)
    assert decide(cluster, second) == Placement("node-0")


def test_requests_are_kept_when_the_node_changes() -> None:
    cluster = cluster_of([build_node("node-0")], [(asking("first", cpu="5"), "node-0")])
    cluster.put_node(build_node("node-0", cpu="9"))
    assert isinstance(decide(cluster, read_pod(asking("second", cpu="5"))), Unschedulable)
    assert decide(cluster, read_pod(asking("second", cpu="4"))) == Placement("node-0")


def test_conflicting_host_ports_are_rejected() -> None:
    cluster = cluster_of([build_node("node-0")], [(pod("first", containers=PORT), "node-0")])
    assert refused(decide(cluster, read_pod(pod(containers=PORT)))) == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )


def test_pods_without_requests_spread_over_equal_nodes() -> None:
    cluster = cluster_of([build_node("a"), build_node("b")])
    chosen = []
    for number in range(4):
        info = read_pod(pod(f"p{number}"))
        decision = decide(cluster, info)
        assert isinstance(decision, Placement)
        cluster.place(info, decision.node)
        chosen.append(decision.node)
    assert chosen == ["a", "b", "a", "b"]


def exclusive(name: str, group: str) -> JSONObject:
    """Build a leader with exclusive-topology affinity, which requires a rack that only its group uses."""

    def term(operator: str) -> JSONObject:
        expressions = [{"key": "group-key", "operator": operator, "values": [group]}]
        if operator == "NotIn":
            expressions.insert(0, {"key": "group-key", "operator": "Exists"})
        return {"labelSelector": {"matchExpressions": expressions}, "topologyKey": "rack"}

    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAffinity": {required: [term("In")]}, "podAntiAffinity": {required: [term("NotIn")]}}
    return pod(name, {"group-key": group}, affinity=affinity)


def test_first_pod_of_a_group_selects_the_domain() -> None:
    cluster = cluster_of(RACKS)
    racks: dict[str, set[str]] = {}
    for name, group in [("a-0", "a"), ("b-0", "b"), ("a-1", "a"), ("b-1", "b"), ("a-2", "a")]:
        info = read_pod(exclusive(name, group))
        decision = decide(cluster, info)
        assert isinstance(decision, Placement), decision
        cluster.place(info, decision.node)
        racks.setdefault(group, set()).add(cluster.nodes[decision.node].labels["rack"])
    assert sorted(map(sorted, racks.values())) == [["r0"], ["r1"]]
    third = decide(cluster, read_pod(exclusive("c-0", "c")))
    assert refused(third) == "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules."


def test_existing_anti_affinity_excludes_other_pods() -> None:
    cluster = cluster_of(RACKS, [(exclusive("a-0", "a"), "node-0")])
    stranger = read_pod(pod("s", {"group-key": "other"}))
    decisions = set()
    for number in range(4):
        decision = decide(cluster, stranger)
        assert isinstance(decision, Placement)
        decisions.add(decision.node)
        cluster.place(read_pod(pod(f"s{number}", {"group-key": "other"})), decision.node)
    assert decisions == {"node-2", "node-3"}


def test_affinity_to_missing_pods_is_rejected_until_one_runs() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "rack"}
    wanted = pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    assert refused(decide(cluster_of(RACKS), read_pod(wanted))) == (
        "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."
    )
    running = [(pod("db", {"app": "db"}), "node-3")]
    decision = decide(cluster_of(RACKS, running), read_pod(wanted))
    assert decision in (Placement("node-2"), Placement("node-3"))


@pytest.mark.parametrize(
    ("fields", "meets"),
    [
        pytest.param({}, False, id="own namespace"),
        pytest.param({"namespaces": ["other"]}, True, id="by name"),
        pytest.param({"namespaceSelector": {}}, True, id="all"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True, id="by label"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False, id="by another label"),
    ],
)
def test_affinity_terms_match_namespaces(*, fields: JSONObject, meets: bool) -> None:
    other = merge(pod("db", {"app": "db"}), {"metadata": {"namespace": "other"}})
    cluster = cluster_of(RACKS, [(other, "node-0")])
    cluster.put_namespace("other", {"team": "x"})
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "rack"} | fields
    wanted = pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    assert isinstance(decide(cluster, read_pod(wanted)), Placement) is meets


def test_match_label_keys_limit_a_term_to_the_own_revision() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "rack", "matchLabelKeys": ["rev"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = cluster_of(RACKS[:1], [(pod("old", {"app": "a", "rev": "1"}), "node-0")])
    assert isinstance(decide(cluster, read_pod(pod("n", {"app": "a", "rev": "2"}, affinity=affinity))), Placement)
    assert isinstance(decide(cluster, read_pod(pod("n", {"app": "a", "rev": "1"}, affinity=affinity))), Unschedulable)


def spreading(name: str, **fields: Any) -> JSONObject:
    """Build a pod with a topology spread constraint for racks."""
    constraint = {"maxSkew": 1, "topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "a"}}}
    return pod(
        name, {"app": "a"}, topologySpreadConstraints=[constraint | {"whenUnsatisfiable": "DoNotSchedule"} | fields]
    )


def test_hard_spread_limits_the_skew() -> None:
    running = [(spreading("one"), "node-0")]
    decision = decide(cluster_of(RACKS, running), read_pod(spreading("two")))
    assert decision == Placement("node-2")
    full = merge(RACKS[2], {"spec": {"unschedulable": True}}), merge(RACKS[3], {"spec": {"unschedulable": True}})
    blocked = decide(cluster_of([*RACKS[:2], *full], running), read_pod(spreading("two")))
    assert refused(blocked) == (
        "0/4 nodes are available: 2 node(s) didn't match pod topology spread constraints, 2 node(s) were unschedulable."
    )


def test_spread_requires_the_label_and_enough_domains() -> None:
    bare = decide(cluster_of([build_node("bare")]), read_pod(spreading("one")))
    assert refused(bare) == (
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label)."
    )
    running = [(spreading("one"), "node-0"), (spreading("two"), "node-2")]
    few = decide(cluster_of(RACKS, running), read_pod(spreading("three", minDomains=3)))
    assert isinstance(few, Unschedulable)


def test_soft_rules_are_preferences() -> None:
    soft = spreading("two", whenUnsatisfiable="ScheduleAnyway")
    assert decide(cluster_of(RACKS, [(spreading("one"), "node-0")]), read_pod(soft)) == Placement("node-2")
    weights = {"weight": 50, "preference": {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}}
    liking = pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weights]}})
    assert decide(cluster_of(RACKS), read_pod(liking)) == Placement("node-2")
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "rack"}
    against = [{"weight": 1, "podAffinityTerm": term}]
    shy = pod(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": against}})
    assert decide(cluster_of(RACKS, [(pod("db", {"app": "db"}), "node-1")]), read_pod(shy)) == Placement("node-2")


def test_term_counts_follow_pods() -> None:
    cluster = cluster_of(RACKS, [(exclusive("a-0", "a"), "node-0")])
    follower = read_pod(exclusive("a-1", "a"))
    assert decide(cluster, follower) == Placement("node-1")
    cluster.remove(read_pod(exclusive("a-0", "a")).uid)
    cluster.place(read_pod(exclusive("a-2", "a")), "node-3")
    assert decide(cluster, follower) == Placement("node-2")
