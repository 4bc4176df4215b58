"""Tests exclusive placement, with one rack per group and one group per rack (contract section 7, R-WSTS-6)."""

from testkit.clusters.cluster import RACK, ZONE
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, pod_names

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.api import labels


async def domains(space: LiveScenario, state: State, key: str) -> dict[str, str]:
    """Return the value of a node label for each scheduled pod."""
    found = await space.client.list(NODES)
    labels_of = {meta.name(node): meta.labels(node) for node in found.items}
    return {
        name: labels_of[meta.spec(pod)["nodeName"]][key]
        for name, pod in state.pods.items()
        if meta.spec(pod).get("nodeName")
    }


async def test_each_group_has_its_own_rack(space: LiveScenario) -> None:
    """Each group runs in a separate rack (R-ADM-7, R-ADM-14, R-WSTS-6, R-LSTS-2, R-WSTS-3)."""
    state = await space.bring_up(lws(replicas=6, size=3, annotations={labels.EXCLUSIVE_TOPOLOGY: RACK}))
    racks = await domains(space, state, RACK)
    by_group = [{racks[pod] for pod in state.group("web", index)} for index in range(6)]
    assert [len(group) for group in by_group] == [1] * 6
    assert len(set.union(*by_group)) == 6
    leader, worker = state.pods["web-0"], state.pods["web-0-1"]
    assert exclusive_terms(leader, RACK) == (labels.GROUP_KEY, meta.labels(leader)[labels.GROUP_KEY])
    assert "affinity" not in worker["spec"]
    assert worker["spec"]["nodeSelector"] == {RACK: racks["web-0"]}
    for pod in (leader, worker):
        assert meta.annotations(pod)[labels.EXCLUSIVE_TOPOLOGY] == RACK


async def test_group_without_a_free_domain_stays_pending(space: LiveScenario) -> None:
    """There are four zones. The fifth group waits until a zone is available (R-WSTS-6, R-ADM-14)."""
    await space.create(lws(replicas=5, size=2, annotations={labels.EXCLUSIVE_TOPOLOGY: ZONE}))

    def one_waits(state: State) -> None:
        waiting = {name for name, pod in state.pods.items() if not meta.spec(pod).get("nodeName")}
        assert len(waiting) == 1
        (name,) = waiting
        condition = meta.find_condition(state.pods[name], "PodScheduled")
        assert condition is not None
        assert condition["reason"] == "Unschedulable"
        assert state.pods.keys() == pod_names("web", 5, 2) - {f"{name}-1"}
        assert all(is_ready(pod) for pod in state.pods.values() if meta.name(pod) != name)

    state = await space.until(one_waits)
    zones = await domains(space, state, ZONE)
    assert len(set(zones.values())) == 4
    await space.edit(replicas=4)
    await space.settled()


async def test_recreated_group_gets_a_rack_again(space: LiveScenario) -> None:
    """The workers are placed in the rack of the new leader (R-WSTS-6, R-POD-9)."""
    before = await space.bring_up(lws(replicas=3, size=3, annotations={labels.EXCLUSIVE_TOPOLOGY: RACK}))
    await space.delete("web-1-1", PODS)

    def is_another(state: State) -> None:
        assert meta.uid(state.pods["web-1"]) != meta.uid(before.pods["web-1"])

    await space.until(is_another)
    state = await space.settled()
    racks = await domains(space, state, RACK)
    assert len({racks[pod] for pod in state.group("web", 1)}) == 1
    assert len(set(racks.values())) == 3


async def test_each_subgroup_has_its_own_rack(space: LiveScenario) -> None:
    """With `LeaderWorker`, the leader is in the first subgroup (R-ADM-8, R-ADM-9, R-ADM-11 to R-ADM-14)."""
    state = await space.bring_up(subgrouped("LeaderWorker", size=4))
    racks = await domains(space, state, RACK)
    subgroups = subgroups_of(state)
    assert subgroups["web-0"] == subgroups["web-0-1"] == "0"
    assert subgroups["web-0-2"] == subgroups["web-0-3"] == "1"
    assert racks["web-0"] == racks["web-0-1"]
    assert racks["web-0-2"] == racks["web-0-3"]
    assert len(set(racks.values())) == 4
    worker = state.pods["web-1-3"]
    assert exclusive_terms(worker, RACK) == (labels.SUBGROUP_KEY, meta.labels(worker)[labels.SUBGROUP_KEY])
    assert meta.annotations(worker)[labels.SUBGROUP_SIZE] == "2"
    assert meta.annotations(worker)[labels.SUBGROUP_POLICY_TYPE] == "LeaderWorker"


async def test_leader_is_outside_of_subgroups_when_excluded(space: LiveScenario) -> None:
    """With LeaderExcluded, the leader is not in a subgroup (R-ADM-8, R-ADM-12)."""
    state = await space.bring_up(subgrouped("LeaderExcluded", size=5))
    racks = await domains(space, state, RACK)
    leader = state.pods["web-0"]
    assert labels.SUBGROUP_INDEX not in meta.labels(leader)
    assert "affinity" not in leader["spec"]
    subgroups = subgroups_of(state)
    assert [subgroups[f"web-0-{worker}"] for worker in (1, 2, 3, 4)] == ["0", "0", "1", "1"]
    assert racks["web-0-1"] == racks["web-0-2"] != racks["web-0-3"] == racks["web-0-4"]


async def test_group_shares_a_zone_and_subgroups_share_racks(space: LiveScenario) -> None:
    """Each group runs in one zone, and each of its subgroups in one rack (R-ADM-7, R-ADM-9)."""
    annotations = {labels.EXCLUSIVE_TOPOLOGY: ZONE, labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: RACK}
    state = await space.bring_up(subgrouped("LeaderWorker", size=4, annotations=annotations))
    zones, racks = await domains(space, state, ZONE), await domains(space, state, RACK)
    for index in range(2):
        assert len({zones[pod] for pod in state.group("web", index)}) == 1
        assert len({racks[pod] for pod in state.group("web", index)}) == 2
    assert zones["web-0"] != zones["web-1"]


async def test_node_selector_of_the_user_is_kept(space: LiveScenario) -> None:
    """The rack is added to the node selector of the template (R-WSTS-6)."""
    template = {"workerTemplate": pod_template(nodeSelector={"kubernetes.io/os": "linux"})}
    await label_nodes(space)
    state = await space.bring_up(
        lws(replicas=1, size=2, template=template, annotations={labels.EXCLUSIVE_TOPOLOGY: RACK})
    )
    rack = (await domains(space, state, RACK))["web-0"]
    assert state.pods["web-0-1"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", RACK: rack}


async def label_nodes(space: LiveScenario) -> None:
    """Add the labels that a kubelet sets to the nodes of the first rack."""
    patch = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
    for index in range(4):
        await space.client.patch(NODES, ObjectKey("", f"node-{index}"), patch, kind="merge")


def subgrouped(policy: str, *, size: int, annotations: dict[str, str] | None = None) -> JSONObject:
    """Return two groups with subgroups of two pods."""
    template = {"subGroupPolicy": {"subGroupPolicyType": policy, "subGroupSize": 2}}
    own = annotations or {labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: RACK}
    return lws(replicas=2, size=size, template=template, annotations=own)


def subgroups_of(state: State) -> dict[str, str]:
    """Return the subgroup index of each pod in a subgroup."""
    found = {name: meta.labels(pod).get(labels.SUBGROUP_INDEX) for name, pod in state.pods.items()}
    return {name: index for name, index in found.items() if index is not None}


def exclusive_terms(pod: JSONObject, key: str) -> tuple[str, str]:
    """Check the two affinity terms for exclusive placement (R-ADM-14). Return label and value."""
    affinity = pod["spec"]["affinity"]
    (near,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (far,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert near["topologyKey"] == far["topologyKey"] == key
    (expression,) = near["labelSelector"]["matchExpressions"]
    label, values = expression["key"], expression["values"]
    assert expression == {"key": label, "operator": "In", "values": values}
    assert far["labelSelector"]["matchExpressions"] == [
        {"key": label, "operator": "Exists"},
        {"key": label, "operator": "NotIn", "values": values},
    ]
    return label, values[0]
