"""Tests groups that return to their previous nodes."""

from functools import partial

from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lws import test_hash as keyed

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels

STAYING = {labels.STAY_ON_NODES: "Preferred", labels.RESTART_FIRST_DELAY: "1s", labels.RESTART_LONGEST_DELAY: "1s"}


def nodes(state: State) -> dict[str, str]:
    """Return the nodes of all pods, by rank, and also by group if groups have indexes."""
    return {_place(pod): meta.spec(pod)["nodeName"] for pod in state.of("web").values()}


def _place(pod: JSONObject) -> str:
    own = meta.labels(pod)
    return f"{own[labels.GROUP_INDEX] if len(own[labels.GROUP_INDEX]) < 40 else ''}/{own[labels.WORKER_INDEX]}"


def preferences(pod: JSONObject) -> list[tuple[str, str]]:
    """Return the node preferences of a pod, as operators and nodes."""
    affinity = (meta.spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
    terms = [
        one["preference"]["matchFields"][0]
        for one in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    ]
    return [(term["operator"], *term["values"]) for term in terms]


async def fail(space: LiveScenario, pod: str) -> State:
    """Make a container of a pod restart. Return the state after its whole group is replaced and ready."""
    before = space.state.uids("web")
    group = {name for name in before if name.startswith(pod.rpartition("-")[0] if pod.count("-") > 1 else pod)}
    await space.fail(pod)

    def is_another(state: State) -> None:
        uids = state.uids("web")
        assert all(uids[name] != before[name] for name in group)

    await space.until(is_another)
    return await space.settled()


async def test_group_returns_to_its_nodes_except_where_it_fails_twice(space: LiveScenario) -> None:
    """The nodes are recorded separately for each rank.

    One failure may be the program's; the second in a row on a node is attributed to the node.
    """
    before = await space.bring_up(lws(replicas=2, size=3, annotations=STAYING))
    assert all(preferences(pod) == [] for pod in before.pods.values())
    await recorded(space, before)
    after = await fail(space, "web-1-2")
    assert nodes(after) == nodes(before)
    assert {preferences(pod)[0] for pod in after.pods.values() if _place(pod)[0] == "1"} == {
        ("In", node) for place, node in nodes(before).items() if place[0] == "1"
    }
    await recorded(space, after)
    again = await fail(space, "web-1-2")
    blamed = nodes(before)["1/2"]
    assert nodes(again)["1/2"] != blamed
    assert {place: node for place, node in nodes(again).items() if place != "1/2"} == {
        place: node for place, node in nodes(before).items() if place != "1/2"
    }
    assert preferences(again.pods["web-1-2"]) == [("NotIn", blamed)]
    assert preferences(again.pods["web-1-1"]) == [("In", nodes(before)["1/1"]), ("NotIn", blamed)]
    assert labels.FORMER_NODES not in meta.annotations(again.pods["web-1-2"])


def _is_of(uid: str, record: JSONObject) -> bool:
    return meta.annotations(record).get(labels.FORMER_LEADER) == uid


async def recorded(space: LiveScenario, state: State) -> None:
    """Wait until the nodes of all groups are recorded."""
    for index in {meta.labels(pod)[labels.GROUP_INDEX] for pod in state.pods.values()}:
        leader = next(pod for pod in state.of("web").values()
                      if meta.labels(pod)[labels.GROUP_INDEX] == index and meta.labels(pod)[labels.WORKER_INDEX] == "0")  # fmt: skip

        async def read(name: str = meta.name(leader)) -> JSONObject:
            listing = await space.client.list(CONTROLLER_REVISIONS, namespace=space.namespace)
            return next((one for one in listing.items if meta.name(one) == f"{name}-recreations"), {})

        uid = meta.uid(leader)
        await space.eventually(read, partial(_is_of, uid))


async def test_cordoned_node_is_left_and_rollout_keeps_other_nodes(space: LiveScenario) -> None:
    """This is only a preference. If the node is unavailable, the group starts on another node."""
    before = await space.bring_up(lws(replicas=1, size=2, annotations=STAYING))
    await recorded(space, before)
    await space.replace_worker_template(pod_template("app:2"))
    rolled = await space.settled()
    assert nodes(rolled) == nodes(before)
    await recorded(space, rolled)
    await space.cordon(nodes(before)["0/1"])
    try:
        moved = await fail(space, "web-0-1")
    finally:
        await space.cordon(nodes(before)["0/1"], unschedulable=False)
    assert nodes(moved)["0/0"] == nodes(before)["0/0"]
    assert nodes(moved)["0/1"] != nodes(before)["0/1"]


async def test_replacement_group_uses_the_nodes_of_the_previous_group(space: LiveScenario) -> None:
    """The patch that removes the leader's gate assigns the nodes (N-GATE-6)."""
    await space.create(lws(replicas=1, size=2, annotations=STAYING, groupIdentity="Hash"))
    before = await keyed.settled(space, 1, 2)
    await recorded(space, before)
    (leader,) = keyed.leaders(before)
    await space.fail(keyed.worker_of(before, leader))

    def is_another(state: State) -> None:
        assert leader not in state.pods
        keyed.assert_settled(state, 1, 2)

    after = await space.until(is_another)
    assert nodes(after) == nodes(before)
    assert all(preferences(pod) == [("In", nodes(before)[_place(pod)])] for pod in after.pods.values())


async def test_same_nodes_annotation_alone_replaces_no_group(space: LiveScenario) -> None:
    """Leaders with an index have the gate from the next revision.

    Workers return to their nodes after the next failure.
    """
    before = await space.bring_up(lws(replicas=1, size=2))
    await space.patch({"metadata": {"annotations": STAYING}})
    await recorded(space, before)
    assert (await space.settled()).uids("web") == before.uids("web")
    after = await fail(space, "web-0-1")
    assert preferences(after.pods["web-0"]) == []
    assert preferences(after.pods["web-0-1"]) == [("In", nodes(before)["0/1"])]
    await recorded(space, after)
    await space.replace_worker_template(pod_template("app:2"))
    rolled = await space.settled()
    assert preferences(rolled.pods["web-0"]) == [("In", nodes(after)["0/0"])]
