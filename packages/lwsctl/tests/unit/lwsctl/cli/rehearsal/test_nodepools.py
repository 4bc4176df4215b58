"""Tests the planning of nodes from manifests. Each pod fits on a node that has all required resources."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kuberuntime.objects.meta import JSON, JSONObject
from localkube.controllers.nodes.nodes import build_node
from localkube.controllers.scheduler.capacity import ClusterState
from localkube.controllers.scheduler.decision import Placement, decide
from localkube.controllers.scheduler.podinfo import read_pod
from lwsctl.cli.local.localcluster import pool_settings
from lwsctl.cli.rehearsal.nodepools import Pool, derive_pools
from lwsctl.cli.rehearsal.podrequirements import pod_demands

GPUS = {"limits": {"nvidia.com/gpu": 8, "cpu": "4"}}


def pod(resources: JSONObject | None = None, **spec: Any) -> JSONObject:
    return {"spec": {"containers": [{"name": "a", "resources": resources or {}}], **spec}}


def lws(worker: JSONObject, *, leader: JSONObject | None = None, name: str = "web", **fields: Any) -> JSONObject:
    group = {"size": fields.pop("size", 1), "workerTemplate": worker, **fields.pop("group", {})}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "annotations": fields.pop("annotations", {})},
        "spec": {**fields, "leaderWorkerTemplate": group | ({"leaderTemplate": leader} if leader else {})},
    }


def found(*objects: JSONObject) -> list[tuple[int, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Return the count, labels, taints and capacity of the node pools for objects."""
    demands = [demand for obj in objects for demand in pod_demands(obj)]
    return [(pool.count, pool.labels, pool.taints, pool.capacity) for pool in derive_pools(demands)]


def test_pods_without_requests_share_a_node() -> None:
    assert found(lws(pod(), replicas=4, size=8)) == [(1, (), (), ())]


def test_each_pod_with_gpus_gets_its_own_node() -> None:
    both = pod(GPUS, initContainers=[{"resources": {"requests": {"nvidia.com/gpu": 2, "rdma/ib": 1}}}])
    assert found(lws(both, replicas=2, size=3)) == [(6, (), (), ("nvidia.com/gpu=8", "rdma/ib=1"))]


def test_leaders_and_workers_with_other_labels_get_own_pools() -> None:
    leader = pod(nodeSelector={"pool": "cpu"})
    worker = pod({"limits": {"google.com/tpu": "4", "hugepages-2Mi": "1Gi"}}, nodeSelector={"pool": "tpu"})
    assert found(lws(worker, leader=leader, replicas=2, size=3)) == [
        (1, ("pool=cpu",), (), ()),
        (4, ("pool=tpu",), (), ("google.com/tpu=4", "hugepages-2Mi=1Gi")),
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"key": "gpu", "operator": "In", "values": ["h100", "a100"]}, ("gpu=h100",)),
        ({"key": "gpu", "operator": "Exists"}, ("gpu=true",)),
        ({"key": "gpus", "operator": "Gt", "values": ["7"]}, ("gpus=8",)),
        ({"key": "gpus", "operator": "Lt", "values": ["7"]}, ("gpus=6",)),
        ({"key": "spot", "operator": "DoesNotExist"}, ()),
    ],
)
def test_required_node_affinity_becomes_labels(expression: JSONObject, expected: tuple[str, ...]) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert found(lws(pod(affinity=affinity))) == [(1, expected, (), ())]


def test_tolerated_taints_exist_except_those_of_unhealthy_nodes() -> None:
    tolerations = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "pool", "value": "a"},
        {"key": "spot", "effect": "NoExecute", "tolerationSeconds": 30},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
        {"operator": "Exists"},
    ]
    assert found(lws(pod(tolerations=tolerations))) == [
        (1, (), ("nvidia.com/gpu:NoSchedule", "pool=a:NoSchedule"), ()),
    ]


NEAR = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "block", "labelSelector": {}}]}


@pytest.mark.parametrize(
    ("strict", "loose", "counts"),
    [
        (pod(GPUS, affinity={"podAffinity": NEAR}), pod(GPUS), (1, 5)),
        (pod(GPUS, nodeSelector={"pool": "a"}), pod(GPUS, nodeSelector={"pool": "b"}), (4, 1)),
        (pod(GPUS, nodeSelector={"pool": "a"}), pod(), (1, 4)),
        (pod(GPUS), pod(GPUS, tolerations=[{"key": "gpu", "operator": "Exists"}]), (5, 1)),
    ],
    ids=["without affinity", "with another selector", "without GPUs", "with a toleration more"],
)
def test_pool_has_enough_nodes_when_pods_may_use_others(
    strict: JSONObject, loose: JSONObject, counts: tuple[int, int]
) -> None:
    assert tuple(count for count, *_ in found(lws(strict, replicas=4), lws(loose))) == counts


def test_undemanding_pod_leaves_nodes_for_the_others() -> None:
    """Otherwise, the embedded scheduler would select the emptiest node, which a different pod requires."""
    near, plain = pod(GPUS, affinity={"podAffinity": NEAR}), pod()
    objects = [lws(near, replicas=4), lws(pod(GPUS)), lws(plain)]
    settings = pool_settings(derive_pools([demand for obj in objects for demand in pod_demands(obj)])).parse()
    cluster = ClusterState()
    for index in range(settings.total):
        cluster.put_node(build_node(settings, index, datetime(2026, 1, 1, tzinfo=UTC)))
    for index, one in enumerate([plain, pod(GPUS), *[near] * 4]):
        info = read_pod(one | {"metadata": {"name": f"web-{index}", "namespace": "default", "uid": f"uid-{index}"}})
        placed = decide(cluster, info)
        assert isinstance(placed, Placement)
        cluster.place(info, placed.node)


def test_exclusive_groups_have_domains_of_one_size() -> None:
    exclusive = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
    leader = pod(GPUS, nodeSelector={"pool": "a"})
    worker = pod(GPUS, nodeSelector={"pool": "b"})
    assert found(lws(worker, leader=leader, replicas=2, size=4, annotations=exclusive)) == [
        (2, ("pool=a", "rack=domain-{i}"), (), ("nvidia.com/gpu=8",)),
        (6, ("pool=b", "rack=domain-{(i-2)//3}"), (), ("nvidia.com/gpu=8",)),
    ]


def test_exclusive_sets_get_enough_domains_for_both() -> None:
    exclusive = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
    sets = [
        lws(pod(GPUS), name=name, replicas=2, size=size, annotations=exclusive) for name, size in (("a", 2), ("b", 3))
    ]
    assert found(*sets) == [(12, ("rack=domain-{i//3}",), (), ("nvidia.com/gpu=8",))]


EXCLUSIVE = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (lws(pod(), name="plain", replicas=2, size=3), [1, 8]),
        (lws(pod(GPUS), name="engine", replicas=1, size=1), [1, 2]),
        (lws(pod(), name="plain", size=3) | {"kind": "Pod", "spec": pod()["spec"]}, [1, 2]),
        (lws(pod(nodeSelector={"pool": "cpu"}), name="apart", size=3), [2, 1]),
        (lws(pod(nodeSelector={"pool": "cpu"}), name="apart", size=3, annotations=EXCLUSIVE), [3, 3]),
    ],
    ids=["any node", "more resources", "without a group", "another selector", "another exclusive set"],
)
def test_exclusive_groups_keep_free_domains_with_other_sets(other: JSONObject, counts: list[int]) -> None:
    exclusive = lws(pod(), replicas=2, annotations=EXCLUSIVE)
    assert [count for count, *_ in found(exclusive, other)] == counts


@pytest.mark.parametrize(("surge", "groups"), [(1, 3), ("50%", 3), (9, 4), ("many", 2), (-1, 2)])
def test_surge_of_a_rollout_has_nodes_and_domains(surge: JSON, groups: int) -> None:
    rollout = {"rollingUpdateConfiguration": {"maxSurge": surge}}
    web = lws(pod(GPUS), replicas=2, size=2, annotations=EXCLUSIVE, rolloutStrategy=rollout)
    assert found(web) == [(2 * groups, ("rack=domain-{i//2}",), (), ("nvidia.com/gpu=8",))]


@pytest.mark.parametrize(
    ("policy", "other", "count"),
    [
        ("ExclusiveTopology", "DisaggregatedSet", 3),
        ("ExclusiveTopology", "LeaderWorkerSet", 2),
        ("ExclusiveSlice", "DisaggregatedSet", 2),
    ],
)
def test_only_exclusive_topologies_keep_other_roles_out(policy: str, other: str, count: int) -> None:
    roles = [{"name": "prefill", "spec": lws(pod())["spec"]}]
    split = {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": {"name": "split"},
        "spec": {"slices": 2, "roles": roles, "placementPolicy": {"type": policy, "topology": "rack"}},
    }
    plain = (
        lws(pod()) if other == "LeaderWorkerSet" else split | {"metadata": {"name": "plain"}, "spec": {"roles": roles}}
    )
    assert sorted(count for count, *_ in found(split, plain)) == [1, count]


def test_exclusive_roles_have_domains_of_their_own() -> None:
    role = {"metadata": {"annotations": EXCLUSIVE}, "spec": lws(pod(), replicas=2)["spec"]}
    spec = {"roles": [{"name": "prefill", **role}, {"name": "decode", **role}]}
    split = {"kind": "DisaggregatedSet", "metadata": {"name": "split"}, "spec": spec}
    assert found(split) == [(4, ("rack=domain-{i}",), (), ())]


@pytest.mark.parametrize(
    ("policy", "label"),
    [
        ({"type": "ExclusiveSlice", "topology": "rack"}, ("rack=domain-{i//16}",)),
        ({"type": "ExclusiveTopology", "topology": "rack"}, ("rack=domain-{i//16}",)),
        ({"type": "None"}, ()),
        ({"type": "ExclusiveSlice", "topology": 7}, ()),
    ],
    ids=["slice", "topology", "none", "invalid"],
)
def test_each_slice_of_a_placement_policy_has_its_domain(policy: JSONObject, label: tuple[str, ...]) -> None:
    roles = [
        {"name": name, "spec": lws(pod(GPUS), size=size, replicas=count)["spec"]}
        for name, size, count in (("prefill", 4, 2), ("decode", 2, 4))
    ]
    obj: JSONObject = {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": {"name": "split"},
        "spec": {"slices": 2, "placementPolicy": policy, "roles": roles},
    }

    assert found(obj) == [(32, label, (), ("nvidia.com/gpu=8",))]


def test_group_domains_consist_of_whole_subgroup_domains() -> None:
    annotations = {
        "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack",
        "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "block",
    }
    group = {"subGroupPolicy": {"subGroupSize": 2}}
    ((count, labels, _, _),) = found(lws(pod(GPUS), size=4, annotations=annotations, group=group))
    assert labels == ("block=domain-{i//3}", "rack=domain-{i//6}")
    assert count == 6


def test_excluded_leader_keeps_its_topology_label() -> None:
    """In this published manifest, the leader runs on CPU nodes, which also have the topology label."""
    annotations = {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "nodepool"}
    leader = pod(nodeSelector={"nodepool": "cpus"})
    group = {"subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}}
    pools = found(lws(pod(GPUS), leader=leader, size=5, annotations=annotations, group=group))
    assert [(count, labels) for count, labels, _, _ in pools] == [
        (4, ("nodepool=domain-{i//2}",)),
        (1, ("nodepool=cpus",)),
    ]


def test_spread_pods_get_separate_nodes_and_domains() -> None:
    spread = [{"topologyKey": "zone"}, {"topologyKey": "kubernetes.io/hostname"}]
    assert found(lws(pod(topologySpreadConstraints=spread), size=3)) == [(3, ("zone=domain-{i}",), (), ())]


def test_roles_are_counted_for_each_slice() -> None:
    role = lws(pod(GPUS), size=2)["spec"]
    spec = {
        "slices": 3,
        "roles": [{"name": "prefill", "spec": role}, {"name": "decode", "spec": role | {"replicas": 2}}],
    }
    demands = pod_demands({"kind": "DisaggregatedSet", "metadata": {"name": "split"}, "spec": spec})
    assert [(demand.source.removeprefix("disaggregatedset/split "), demand.pods) for demand in demands] == [
        ("prefill leader", 3),
        ("prefill workers", 3),
        ("decode leader", 6),
        ("decode workers", 6),
    ]


def test_other_kinds_demand_no_nodes() -> None:
    single = {"kind": "Pod", "metadata": {"name": "a"}, **pod(GPUS)}
    several = {"kind": "StatefulSet", "metadata": {"name": "b"}, "spec": {"replicas": 3, "template": pod(GPUS)}}
    assert found(single, several, {"kind": "Service", "spec": {}}) == [(4, (), (), ("nvidia.com/gpu=8",))]


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "LeaderWorkerSet", "spec": {"replicas": "two", "leaderWorkerTemplate": {"size": None}}},
        {"kind": "LeaderWorkerSet", "spec": {"leaderWorkerTemplate": []}},
        {"kind": "Pod", "spec": {"containers": "none", "tolerations": [1], "nodeSelector": ["x"]}},
        {"kind": "Pod", "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "many"}}}]}},
        {"kind": "Pod"},
    ],
)
def test_invalid_manifest_fields_are_left_to_the_api_server(broken: JSONObject) -> None:
    assert found(broken) == [(1, (), (), ())]


def test_pool_describes_its_assumptions() -> None:
    pool = Pool(count=2, labels=("a=b",), taints=("t:NoSchedule",), capacity=("rdma/ib=1",), sources=("pod/a", "pod/b"))
    assert str(pool) == "2 nodes with label a=b, taint t:NoSchedule, rdma/ib=1 (for pod/a, pod/b)"
    assert str(Pool(count=1, sources=("pod/a",))) == "1 node (for pod/a)"
