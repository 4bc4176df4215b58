"""Tests the sums, cached fields and triggers of the built-in gate controller."""

from typing import Any

import pytest
from tests.kept import Reads, TrackedObject, assert_declared
from tests.unit.leaderworkerset.core.gang.test_gate import member

from kuberuntime.cache.informer import Change
from kuberuntime.cache.projection import Path, Projection
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import NANOS
from leaderworkerset.controllers import cachedfields, ganggate
from leaderworkerset.controllers.ganggate import KEY, Usage
from leaderworkerset.core.gang import gate
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds

TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NODE: JSONObject = {
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"zone": "a", "pool": "p"}, "annotations": {"noise": "x"}},
    "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}], "unschedulable": False, "podCIDR": "10.0.0.0/24"},
    "status": {"allocatable": {"cpu": "4", "pods": "10"}, "conditions": [{"type": "Ready"}]},
}


def gated_pod(index: int = 0, **spec: Any) -> JSONObject:
    """Return a gated pod with all relevant fields and additional fields."""
    made = member("web-0-x", index)
    made["kind"] = "Pod"
    made["spec"] |= {
        "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}, "image": "i"}],
        "resources": {"requests": {"cpu": "1"}},
        "overhead": {"cpu": "250m"},
        "priority": 3,
        "nodeSelector": {"pool": "p"},
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}},
            "podAffinity": {},
        },
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "v"}],
    } | spec
    return made


def bound(node: str = "n", cpu: str = "1") -> JSONObject:
    made = member("x", 0, gates=())
    made["spec"] |= {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    return made


def test_resources_of_bound_pods_are_added_and_released() -> None:
    usage = Usage()
    one, other = bound(), bound()
    other["metadata"]["uid"] = "other"

    usage.update(Change(None, one))
    usage.update(Change(None, other))
    assert usage.snapshot() == {"n": {"cpu": 2 * NANOS, "pods": 2 * NANOS}}
    usage.update(Change(one, bound()))
    assert usage.snapshot() == {"n": {"cpu": 2 * NANOS, "pods": 2 * NANOS}}
    usage.update(Change(other, None))
    assert usage.snapshot() == {"n": {"cpu": NANOS, "pods": NANOS}}
    usage.update(Change(one, None))
    assert usage.snapshot() == {}


def test_pod_counts_from_its_binding_with_its_current_requests() -> None:
    usage = Usage()

    usage.update(Change(None, gated_pod()))
    assert usage.snapshot() == {}
    usage.update(Change(gated_pod(), bound()))
    usage.update(Change(bound(), bound(cpu="2")))
    assert usage.snapshot() == {"n": {"cpu": 2 * NANOS, "pods": NANOS}}


def test_caches_keep_only_the_fields_that_are_read() -> None:
    """Each cached field of all pods in the cluster uses memory."""
    reads: list[Reads] = []

    def tracked(obj: JSONObject, projection: Projection) -> JSONObject:
        reads.append(Reads(obj, projection))
        return TrackedObject(obj, (), reads[-1])

    pods = [tracked(gated_pod(index), cachedfields.PLACED_POD) for index in range(2)]
    states = [list(ganggate.states(one)) for one in pods]
    gate.reconcile(gate.ObservedCluster(nodes=[tracked(NODE, cachedfields.NODE)], used={}, unbound=pods, members=pods))

    assert states == [["unbound", "gated"]] * 2
    assert_declared(reads)
    for kind, projection in (("Pod", cachedfields.PLACED_POD), ("Node", cachedfields.NODE)):
        read = {path for one in reads if one.kind == kind for path in one.paths}
        assert not {path for path in declared(projection) if not any(one[: len(path)] == path for one in read)}


def declared(projection: Projection) -> set[Path]:
    return set(projection.paths) - set(Projection().paths)


def test_cached_fields_lead_to_the_same_decision() -> None:
    pods = [gated_pod(index) for index in range(2)]
    lean = [cachedfields.PLACED_POD(one) for one in pods]

    whole = gate.reconcile(gate.ObservedCluster(nodes=[NODE], used={}, unbound=pods, members=pods))

    assert whole.actions
    assert (
        gate.reconcile(gate.ObservedCluster(nodes=[cachedfields.NODE(NODE)], used={}, unbound=lean, members=lean))
        == whole
    )


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, gated_pod(), True),
        (gated_pod(), None, True),
        (gated_pod(), gated_pod(nodeName="n"), True),
        (gated_pod(), gated_pod(schedulingGates=[]), True),
        (gated_pod(), gated_pod() | {"status": {"phase": "Running"}}, False),
    ],
    ids=["came", "went", "bound", "gates", "status"],
)
def test_only_changes_of_space_and_gates_enqueue_the_gate(
    old: JSONObject | None, new: JSONObject | None, wakes: bool
) -> None:
    assert list(ganggate.keys_of_pod(Change(old, new))) == ([KEY] if wakes else [])


def test_node_heartbeat_does_not_enqueue_the_gate() -> None:
    beating = NODE | {"status": NODE["status"] | {"conditions": [{"type": "Ready", "lastHeartbeatTime": "now"}]}}
    grown = NODE | {"status": {"allocatable": {"cpu": "8"}}}

    assert list(ganggate.keys_of_node(Change(NODE, beating))) == []
    assert list(ganggate.keys_of_node(Change(NODE, grown))) == [KEY]
    assert list(ganggate.keys_of_node(Change(None, NODE))) == [KEY]


def test_only_the_built_in_gate_lists_nodes_and_patches_pods() -> None:
    """List permissions cover all pods, because a selector does not limit them."""
    more = set(managed_kinds("built-in").permissions) - set(MANAGED.permissions)

    assert {(one.resource.plural, verb) for one in more for verb in one.verbs} == {
        ("nodes", "list"),
        ("nodes", "watch"),
        ("pods", "patch"),
    }
