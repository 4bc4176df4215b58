"""Tests nodes that are drained, lost, or temporarily unresponsive."""

from tests.controlplane.process import StartError
from tests.node import daemons
from tests.node.machine import Machine
from tests.node.objects import leaderworkerset, pod
from tests.node.outages.conftest import OUT_OF_SERVICE
from tests.node.place import LWS, Place, is_ready

from kuberuntime.objects.meta import JSONObject

MOVING = "leaderworkerset.sigs.k8s.io/moving"
SOON = [
    {"key": f"node.kubernetes.io/{reason}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
    for reason in ("not-ready", "unreachable")
]
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}


def spread(name: str, annotations: dict[str, str] | None = None) -> JSONObject:
    """Return three groups of two pods on both nodes."""
    template = pod(topologySpreadConstraints=[SPREAD], tolerations=SOON)
    template["metadata"] = {"labels": {"app": "spread"}}
    return leaderworkerset(name, template, replicas=3, annotations=annotations)


def nodes_of(place: Place, name: str) -> set[str]:
    """Return the nodes of the LeaderWorkerSet pods that are not being deleted."""
    return {one["spec"].get("nodeName", "") for one in place.pods(name) if is_ready(one)}


def test_kubectl_drain_ends_with_group_budgets(place: Place) -> None:
    obj = spread("drained", {"disruption-budget": "rollout"})
    place.ready(obj, 6)
    assert nodes_of(place, "drained") == {"node1", "node2"}
    place.until(lambda: place.kubectl("get", "pdb", "--output=name"), "the budget")
    flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=240s", "--pod-selector=app=spread")
    place.cluster.kubectl("drain", "node2", *flags)
    place.await_ready("drained", 3, 6)
    assert nodes_of(place, "drained") == {"node1"}


def test_lws_drain_moves_groups(place: Place) -> None:
    place.ready(spread("moved", {"move-off-closed-nodes": "on"}), 6)
    place.lws("drain", "node2", "--timeout=4m")
    place.await_ready("moved", 3, 6)
    assert nodes_of(place, "moved") == {"node1"}


def test_lws_move_moves_a_group_off_a_node(place: Place) -> None:
    obj = leaderworkerset("one", pod())
    before = place.ready(obj, 2)
    node = before[0]["spec"]["nodeName"]
    place.lws("move", "one/0", "--off", node)
    after = place.await_ready("one", 1, 2)
    assert {pod["spec"]["nodeName"] for pod in after}.isdisjoint({node})
    assert not taints(place)


def test_lws_move_rejects_a_group_that_fits_nowhere_else(place: Place) -> None:
    pinned = leaderworkerset("pinned", pod(nodeSelector={"kubernetes.io/hostname": "node2"}))
    place.ready(pinned, 2)
    apart = pod(topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}])
    apart["metadata"] = {"labels": {"app": "spread"}}
    place.ready(leaderworkerset("both", apart), 2)
    before = {name: place.uids(name) for name in ("pinned", "both")}
    for words in ((), ("--dry-run",)):
        refused = place.lws("move", "pinned/0", *words, code=1)
        assert "does not fit on any other node (node selector, affinity or volume: node1)" in refused
        assert "does not fit on any other node (no other node exists)" in place.lws("move", "both/0", *words, code=1)
    assert "it fits on node1 (2 pods)" in place.lws("move", "both/0", "--off=node2", "--dry-run")
    assert {name: place.uids(name) for name in before} == before
    assert not taints(place)


def test_lws_move_removes_its_taint_when_terminated(place: Place) -> None:
    obj = leaderworkerset("stays", pod(nodeSelector={"kubernetes.io/hostname": "node2"}))
    place.ready(obj, 2)
    with place.running([*LWS, "move", "--namespace", place.name, "stays/0", "--force"]) as process:
        place.until(lambda: MOVING in taints(place), "the taint")
        process.terminate()
        process.wait(60)
    assert MOVING not in taints(place)


def taints(place: Place) -> list[str]:
    """Return the keys of all taints on the node."""
    return place.cluster.kubectl("get", "nodes", "--output=jsonpath={.items[*].spec.taints[*].key}").split()


def test_unavailable_kubelet_touches_no_pod(place: Place) -> None:
    place.ready(spread("silent"), 6)
    before = place.uids("silent")
    machine = place.cluster.machines[1]
    for name in ("kubelet", "containerd"):
        machine.kill(name)
    start(place, machine)
    pod = str(on_node(place, "silent", machine)[0]["metadata"]["name"])
    place.until(lambda: answers(place, pod), f"an answer of {pod}")
    place.await_ready("silent", 3, 6)
    assert place.uids("silent") == before


def test_groups_leave_a_lost_node(place: Place) -> None:
    place.ready(spread("lost"), 6)
    machine = place.cluster.machines[1]
    assert on_node(place, "lost", machine)
    for name in ("kubelet", "containerd"):
        machine.kill(name)
    place.cluster.kubectl("wait", "--for=condition=Ready=Unknown", f"node/{machine.name}", "--timeout=120s")
    place.cluster.kubectl("taint", "node", machine.name, f"{OUT_OF_SERVICE}=lost:NoExecute")
    place.until(lambda: not on_node(place, "lost", machine), "no pod on the lost node")
    place.await_ready("lost", 3, 6)


def answers(place: Place, pod: str) -> bool:
    """Return whether commands can run in a pod."""
    try:
        place.exec(pod, "true")
    except StartError:
        return False
    return True


def on_node(place: Place, name: str, machine: Machine) -> list[JSONObject]:
    """Return the LeaderWorkerSet pods on a node."""
    return [one for one in place.pods(name) if one["spec"].get("nodeName") == machine.name]


def start(place: Place, machine: Machine) -> None:
    """Start containerd and the kubelet of a node."""
    daemons.start_containerd(machine, place.cluster.node_assets)
    daemons.start_kubelet(machine, place.cluster.node_assets, place.cluster.kubeconfig.parent)
