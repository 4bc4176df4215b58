"""Tests exclusive placement, subgroups and TPUs with random group keys (contract-newest)."""

import pytest
from testkit.clusters.cluster import RACK
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, shows
from tests.integration.lws.test_hash import HASH, leaders, settled
from tests.integration.lws.test_placement import domains, exclusive_terms

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.core.policies.identity import group_hash


def with_tpus() -> JSONObject:
    """Return a pod template whose container requests TPUs."""
    template = pod_template()
    template["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": "4"}}
    return template


def told(pod: JSONObject) -> dict[str, str]:
    """Return the environment variables of the first container."""
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}


def by_key(state: State) -> dict[str, dict[str, JSONObject]]:
    """Return the pods of `web` by group key."""
    found: dict[str, dict[str, JSONObject]] = {}
    for name, pod in state.of("web").items():
        found.setdefault(meta.labels(pod)[labels.GROUP_KEY], {})[name] = pod
    return found


async def test_each_group_with_a_random_key_has_its_own_rack(space: LiveScenario) -> None:
    """A replacement group also runs in a separate rack (N-ADM-6, N-AT-3)."""
    await space.create(lws(replicas=3, size=3, annotations={labels.EXCLUSIVE_TOPOLOGY: RACK}, **HASH))
    before = await settled(space, 3, 3)
    await assert_racks(space, before)
    await space.delete(leaders(before)[0], PODS)
    await space.until(shows(lambda state: len(before.uids("web").items() & state.uids("web").items()), 6))
    await assert_racks(space, await settled(space, 3, 3))


async def assert_racks(space: LiveScenario, state: State) -> None:
    """Assert that each group runs in one rack, and that no two groups share a rack."""
    racks = await domains(space, state, RACK)
    by_group = [{racks[name] for name in pods} for pods in by_key(state).values()]
    assert [len(group) for group in by_group] == [1] * 3
    assert len(set.union(*by_group)) == 3
    for name in leaders(state):
        leader = state.pods[name]
        assert exclusive_terms(leader, RACK) == (labels.GROUP_KEY, meta.labels(leader)[labels.GROUP_KEY])
        worker = state.pods[f"{meta.spec(leader)['hostname']}-1"]
        assert worker["spec"]["nodeSelector"] == {RACK: racks[name]}


async def test_subgroup_keys_derive_from_the_group_key(space: LiveScenario) -> None:
    """Subgroup keys derive from the group key (N-ADM-5)."""
    policy = {"subGroupPolicy": {"subGroupSize": 2}}
    await space.create(lws(replicas=2, size=4, template=policy, **HASH))
    state = await settled(space, 2, 4)
    for key, pods in by_key(state).items():
        found = {
            meta.labels(pod)[labels.WORKER_INDEX]: [
                meta.labels(pod)[one] for one in (labels.SUBGROUP_INDEX, labels.SUBGROUP_KEY)
            ]
            for pod in pods.values()
        }
        first, second = (group_hash(key, index) for index in "01")
        assert found == {"0": ["0", first], "1": ["0", first], "2": ["1", second], "3": ["1", second]}


@pytest.mark.parametrize("slices", ["whole", "subgroups", "without the leader"])
async def test_ranks_with_tpus_know_the_hosts_of_their_group(space: LiveScenario, slices: str) -> None:
    """The pods remain pending, because no node has TPUs (N-AT-2, N-ADM-10)."""
    template: JSONObject = {"workerTemplate": with_tpus()}
    size, members = 4, [[0, 1, 2, 3]]
    if slices == "subgroups":
        template, members = template | {"subGroupPolicy": {"subGroupSize": 2}}, [[0, 1], [2, 3]]
    elif slices == "without the leader":
        excluded = {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}
        size, members = 5, [[1, 2], [3, 4]]
        template |= {"subGroupPolicy": excluded, "leaderTemplate": without_tpus()}
    await space.create(lws(replicas=1, size=size, template=template, **HASH))
    state = await space.until(shows(lambda state: len(state.of("web")), size))
    (pods,) = by_key(state).values()
    (leader,) = (pods[name] for name in leaders(state))
    host = meta.spec(leader)["hostname"]
    by_rank = {int(meta.labels(pod)[labels.WORKER_INDEX]): pod for pod in pods.values()}
    assert [meta.name(by_rank[rank]) for rank in range(1, size)] == [f"{host}-{rank}" for rank in range(1, size)]
    for ranks in members:
        hosts = [f"{host}-{rank}.web" if rank else f"{host}.web" for rank in ranks]
        for number, rank in enumerate(ranks):
            found = told(by_rank[rank])
            assert found["TPU_WORKER_HOSTNAMES"] == ",".join(hosts)
            assert (found["TPU_NAME"], found["TPU_WORKER_ID"]) == (host, str(number))
            assert found["TPU_PROCESS_ADDRESSES"] == ",".join(f"{one}:8476" for one in hosts)


def without_tpus() -> JSONObject:
    template = with_tpus()
    del template["spec"]["containers"][0]["resources"]
    return template
