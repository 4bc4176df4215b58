"""Tests quota, scaling and topology of Kueue's page "Run LeaderWorkerSet" on both clusters."""

from typing import Any

from testkit.clusters.cluster import NODES_PER_RACK
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, shows
from tests.integration.lws.test_hash import HASH, edit, leaders, settled
from tests.kueue.reconciler import MANAGED, ROLE, TOTAL, Kueue
from tests.kueue.webhooks import FRAMEWORK, PARENT, QUEUE, TOPOLOGY

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname, labels


def queued(**spec: Any) -> JSONObject:
    """Return a queued LeaderWorkerSet."""
    made = lws(**spec)
    return made | {"metadata": made["metadata"] | {"labels": {QUEUE: "team"}}}


def run(state: State, *indexes: int, replicas: int, size: int = 3) -> None:
    """Check that all pods of these groups run, and that all pods of the other groups exist and wait."""
    found = {index: state.group("web", index) for index in range(replicas)}
    assert len(state.of("web")) == replicas * size
    for index, pods in found.items():
        assert len(pods) == size
        assert all(is_ready(pod) for pod in pods.values()) is (index in indexes)
        assert all(bool(meta.spec(pod).get("schedulingGates")) for pod in pods.values()) is (index not in indexes)


async def test_groups_within_the_quota_are_admitted_while_scaling(space: LiveScenario, kueue: Kueue) -> None:
    """When the set is scaled, groups within the quota are admitted.

    Rules R-KQ-10, R-KQ-20, R-KQ-30 to R-KQ-33, R-KQ-43 to R-KQ-46, R-KQ-48, R-KQ-60, R-KQ-70.
    """
    kueue.quota = 1
    created = await space.create(queued(replicas=2))
    assert meta.spec(created)["rolloutStrategy"]["type"] == "RollingUpdate"

    state = await space.until(run_leader_only)
    for pod in state.of("web").values():
        assert meta.annotations(pod)[PARENT] == FRAMEWORK
        assert meta.labels(pod)[QUEUE] == "team"

    await space.edit(replicas=3)
    await space.until(lambda state: run(state, 0, replicas=3))
    kueue.quota = 3
    await space.until(lambda state: run(state, 0, 1, 2, replicas=3))
    await space.settled()
    for pod in space.state.of("web").values():
        assert (meta.labels(pod)[MANAGED], meta.annotations(pod)[TOTAL], meta.annotations(pod)[ROLE]) == (
            "true",
            "3",
            "main",
        )
    await space.edit(replicas=1)
    await space.settled()
    run(space.state, 0, replicas=1)
    await space.edit(replicas=0)
    await space.settled()
    assert not space.state.of("web")
    assert meta.status(space.state.leaderworkersets["web"]).get("replicas", 0) == 0


def run_leader_only(state: State) -> None:
    """Check that the first of two groups runs."""
    run(state, 0, replicas=2)


async def test_evicted_group_waits_and_returns(space: LiveScenario, kueue: Kueue) -> None:
    """Only the pods of this group are recreated. They wait behind their gates (R-KQ-63, R-KQ-64, R-KQ-71)."""
    kueue.quota = 2
    await space.bring_up(queued(replicas=2))
    running = space.state.group("web", 0)

    kueue.evicted.add(1)
    await space.until(lambda state: run(state, 0, replicas=2))

    lws = space.state.leaderworkersets["web"]
    available = meta.find_condition(lws, "Available") or {}
    assert (available["status"], available["reason"]) == ("False", "AllGroupsReady")
    assert meta.status(lws)["readyReplicas"] == 1
    assert space.state.group("web", 0).keys() == running.keys()
    kueue.evicted.clear()
    await space.settled()


async def test_completed_group_returns_its_quota(space: LiveScenario, kueue: Kueue) -> None:
    """The waiting group starts after the first group completes and its Workload is finished (R-KQ-12, R-KQ-34)."""
    kueue.quota = 1
    await space.create(queued(replicas=2, annotations={labels.RUN_TO_COMPLETION: "true"}))
    await space.until(run_leader_only)
    await space.complete_container("web-0")

    def leader_is_left(state: State) -> None:
        found = state.group("web", 0)
        assert found.keys() == {"web-0"}
        assert meta.annotations(found["web-0"])[labels.GROUP_ENDED] == "Complete"

    await space.until(leader_is_left)
    await space.end_kept("web-0")
    await space.until(shows(lambda state: [is_ready(pod) for pod in state.group("web", 1).values()], [True] * 3))
    assert kueue.finished == {0}
    await space.complete_container("web-1")
    await space.until(complete)


def complete(state: State) -> None:
    """Assert that all groups are complete."""
    assert meta.is_condition_true(state.leaderworkersets["web"], "Complete")


async def test_update_starts_no_pod_without_quota(space: LiveScenario, kueue: Kueue) -> None:
    """The waiting group is the first to receive the new template (R-KQ-47, R-KQ-61)."""
    kueue.quota = 1
    await space.create(queued(replicas=2))
    await space.until(run_leader_only)

    await space.replace_worker_template(pod_template("app:2"))

    def is_new(state: State) -> None:
        run(state, 0, replicas=2)
        assert {image(pod) for pod in state.group("web", 1).values()} == {"app:2"}

    await space.until(is_new)
    assert kueue.unpaid == []
    kueue.quota = 2
    await space.settled()
    assert {image(pod) for pod in space.state.of("web").values()} == {"app:2"}
    assert kueue.unpaid == []


async def test_groups_with_random_keys_run_up_to_the_quota(space: LiveScenario, kueue: Kueue) -> None:
    """Both scheduling gates are removed by their owners. A replacement group waits for quota like other groups."""
    kueue.quota = 1
    await space.create(queued(replicas=2, **HASH))

    def one_runs(state: State) -> None:
        found: dict[str, list[bool]] = {}
        for pod in state.of("web").values():
            found.setdefault(groupname.group_label(pod), []).append(is_ready(pod))
        assert sorted(found.values()) == [[False] * 3, [True] * 3]

    before = await space.until(one_runs)
    (running,) = (name for name in leaders(before) if is_ready(before.pods[name]))
    await space.delete(running, PODS)

    def another_runs(state: State) -> None:
        one_runs(state)
        assert running not in state.pods

    await space.until(another_runs)
    kueue.quota = 2
    await settled(space, 2, 3)
    await edit(space, replicas=1)
    await settled(space, 1, 3)


def image(pod: JSONObject) -> str:
    return str(meta.spec(pod)["containers"][0]["image"])


async def test_each_group_gets_a_domain_and_hosts_by_rank(space: LiveScenario, kueue: Kueue) -> None:
    """Each group is assigned a domain, and its ranks are assigned hosts (R-KQ-50 to R-KQ-54, R-KQ-56)."""
    kueue.quota = 2
    template = pod_template() | {"metadata": {"annotations": {TOPOLOGY: "rack"}}}
    await space.bring_up(queued(replicas=2, size=4, template={"workerTemplate": template}))
    for index in range(2):
        pods = sorted(space.state.group("web", index).values(), key=lambda pod: meta.labels(pod)[labels.WORKER_INDEX])
        first = index * NODES_PER_RACK
        assert [meta.spec(pod)["nodeName"] for pod in pods] == [f"node-{first + rank // 2}" for rank in range(4)]
