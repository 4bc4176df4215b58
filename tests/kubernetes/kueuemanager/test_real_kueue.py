"""Tests that Kueue manages LeaderWorkerSets: quota for groups, scaling, updates, eviction, and topology."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pytest
from testkit.clusters.cluster import RACK
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, shows
from tests.integration.lwsctl.explanations import named
from tests.kubernetes.kueuemanager.conftest import LOCAL_QUEUE, Queue
from tests.kueue.webhooks import FRAMEWORK, PARENT, QUEUE, TOPOLOGY

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NODES
from leaderworkerset.api import labels

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("running", ["kubernetes"], indirect=True)]

SIZE: Final = 3
WORKLOAD: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""The annotation with the name of the Workload that admits the pods of a group."""


def template(image: str = "app:1", **annotations: str) -> JSONObject:
    """Return a pod template that requests one CPU."""
    made = pod_template(image)
    (container,) = made["spec"]["containers"]
    asking = container | {"resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"annotations": annotations}, "spec": made["spec"] | {"containers": [asking]}}


def queued(replicas: int, workers: JSONObject | None = None, **spec: Any) -> JSONObject:
    """Return a LeaderWorkerSet that uses the queue of its namespace."""
    made = lws(replicas=replicas, size=SIZE, template={"workerTemplate": workers or template()}, **spec)
    return made | {"metadata": made["metadata"] | {"labels": {QUEUE: LOCAL_QUEUE}}}


def groups_that_run(state: State, replicas: int) -> set[int]:
    """Wait until `count` groups exist, and all pods of each group either run or wait. Return the running groups."""
    assert len(state.of("web")) == replicas * SIZE
    found = set()
    for index in range(replicas):
        pods = state.group("web", index).values()
        assert len(pods) == SIZE
        running = [pod for pod in pods if is_ready(pod)]
        waiting = [pod for pod in pods if meta.spec(pod).get("schedulingGates")]
        assert SIZE in {len(running), len(waiting)}
        if running:
            found.add(index)
    return found


async def running_groups(space: LiveScenario, count: int, *, of: int) -> set[int]:
    """Wait until `count` groups run and the other groups wait. Return the indexes of the running groups."""
    return groups_that_run(await space.until(shows(lambda state: len(groups_that_run(state, of)), count)), of)


async def test_quota_is_used_per_group_when_scaling(space: LiveScenario, queue: Queue) -> None:
    """Scaling applies quota to whole groups (R-KQ-10, R-KQ-20 to R-KQ-25, R-KQ-30 to R-KQ-33).

    See also R-KQ-43 to R-KQ-48, and R-KQ-60.
    """
    await queue.make(SIZE)
    created = await space.create(queued(2))
    assert meta.spec(created)["rolloutStrategy"]["type"] == "RollingUpdate"
    (running,) = await running_groups(space, 1, of=2)
    told = await named(space, "LWS-E030", f"web/{1 - running}")
    assert "insufficient unused quota for cpu" in str(told)
    for pod in space.state.of("web").values():
        assert meta.annotations(pod)[PARENT] == FRAMEWORK
        assert meta.labels(pod)[QUEUE] == LOCAL_QUEUE

    await space.edit(replicas=3)
    await running_groups(space, 1, of=3)
    await queue.allow(3 * SIZE)
    await running_groups(space, 3, of=3)
    await space.settled()
    await space.eventually(queue.workloads, lambda found: len(found) == 3)

    await space.edit(replicas=1)
    assert await running_groups(space, 1, of=1) == {0}
    await space.settled()
    await space.eventually(queue.workloads, lambda found: len(found) == 1)
    await space.delete("web")
    await space.until(assert_nothing)
    await space.eventually(queue.workloads, lambda found: not found)


def assert_nothing(state: State) -> None:
    """Assert that no pod and no LeaderWorkerSet remains."""
    assert not state.pods
    assert not state.leaderworkersets


async def test_rollout_stays_within_the_quota(space: LiveScenario, queue: Queue) -> None:
    """The waiting group is updated first, and the running group after quota is available (R-KQ-61)."""
    await queue.make(SIZE)
    await space.create(queued(1))
    await running_groups(space, 1, of=1)
    await space.edit(replicas=2)
    assert await running_groups(space, 1, of=2) == {0}, "a waiting group below a running one is another story"

    await space.replace_worker_template(template("app:2"))

    def waits_as_new(state: State) -> None:
        assert groups_that_run(state, 2) == {0}
        assert images(state.group("web", 1)) == {"app:2"}

    await space.until(waits_as_new)
    await queue.allow(2 * SIZE)
    await space.settled()
    await running_groups(space, 2, of=2)
    assert images(space.state.of("web")) == {"app:2"}


def images(pods: Mapping[str, JSONObject]) -> set[str]:
    """Return the images of these pods."""
    return {meta.spec(pod)["containers"][0]["image"] for pod in pods.values()}


async def test_evicted_group_waits_and_returns(space: LiveScenario, queue: Queue) -> None:
    """Only pods of the evicted group are recreated, with scheduling gates (R-KQ-63, R-KQ-64, R-KQ-71)."""
    await queue.make(2 * SIZE)
    await space.create(queued(2))
    await running_groups(space, 2, of=2)
    await space.settled()
    before = space.state.uids("web")
    evicted = meta.annotations(space.state.pods["web-1"])[WORKLOAD]

    await queue.activate(evicted, active=False)
    assert await running_groups(space, 1, of=2) == {0}
    after = space.state.uids("web")
    assert {name for name in before if before[name] == after[name]} == set(space.state.group("web", 0))

    await queue.activate(evicted, active=True)
    await running_groups(space, 2, of=2)
    await space.settled()


async def test_complete_group_releases_its_quota_and_runs_again(space: LiveScenario, queue: Queue) -> None:
    """Kueue finishes the Workload of a completed group, and admits the next group (R-KQ-12, R-KQ-34)."""
    await queue.make(SIZE)
    await space.create(queued(2, annotations={labels.RUN_TO_COMPLETION: "true"}))
    (first,) = await running_groups(space, 1, of=2)
    own = {index: meta.annotations(space.state.pods[f"web-{index}"])[WORKLOAD] for index in range(2)}
    for index in (first, 1 - first):
        await whole(space, index, "app:1")
        await space.complete_container(f"web-{index}")
        await space.until(partial(assert_alone, index))
        await space.end_kept(f"web-{index}")
        await space.eventually(queue.workloads, partial(is_finished, own[index]))
    await space.until(assert_complete)

    await space.replace_worker_template(template("app:2"))
    await space.until(assert_waiting)
    assert f"Workload {own[1]} is finished" in str(await named(space, "LWS-E030", "web/1"))
    await queue.forget(own[1])
    await whole(space, 1, "app:2")


async def whole(space: LiveScenario, index: int, image: str) -> None:
    """Wait until all pods of a group run with this image."""

    def runs(state: State) -> None:
        found = state.group("web", index)
        assert [is_ready(pod) for pod in found.values()] == [True] * SIZE
        assert images(found) == {image}

    await space.until(runs)


def assert_alone(index: int, state: State) -> None:
    """Assert that only the leader of a group remains, and is marked as complete."""
    found = state.group("web", index)
    assert found.keys() == {f"web-{index}"}
    assert meta.annotations(found[f"web-{index}"])[labels.GROUP_ENDED] == "Complete"


def assert_complete(state: State) -> None:
    """Assert that all groups are complete."""
    assert meta.is_condition_true(state.leaderworkersets["web"], "Complete")


def is_finished(name: str, workloads: list[JSONObject]) -> bool:
    """Return whether the Workload with this name is finished."""
    return name in {meta.name(one) for one in workloads if meta.is_condition_true(one, "Finished")}


def assert_waiting(state: State) -> None:
    """Assert that the last group waits with the new template, and that its pods have the name of the Workload."""
    found = state.group("web", 1)
    assert images(found) == {"app:2"}
    assert all(WORKLOAD in meta.annotations(pod) for pod in found.values())
    assert [bool(meta.spec(pod).get("schedulingGates")) for pod in found.values()] == [True] * SIZE


async def test_groups_with_a_topology_have_one_rack_each(space: LiveScenario, queue: Queue) -> None:
    """All pods of a group that requests a rack run in one rack (R-KQ-50 to R-KQ-56)."""
    await queue.make(2 * SIZE, levels=(RACK, "kubernetes.io/hostname"))
    await space.create(queued(2, template(**{TOPOLOGY: RACK})))
    await running_groups(space, 2, of=2)
    nodes = {meta.name(node): node for node in (await space.client.list(NODES)).items}
    for index in range(2):
        pods = space.state.group("web", index).values()
        assert len({meta.labels(nodes[meta.spec(pod)["nodeName"]])[RACK] for pod in pods}) == 1
        assert {meta.labels(pod)[labels.WORKER_INDEX] for pod in pods} == {"0", "1", "2"}
