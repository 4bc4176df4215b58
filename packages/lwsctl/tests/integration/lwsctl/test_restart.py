"""Tests the effect of one failed pod on its group (contract 8.2)."""

from datetime import timedelta

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, shows
from tests.integration.lws.recreation import assert_notes, created_leaders, replaced
from tests.integration.lwsctl.explanations import named

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels

GROUPS = 20


@pytest.mark.parametrize("pod", ["web-1", "web-1-2"], ids=["leader", "worker"])
@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart"])
async def test_restarted_container_recreates_the_group(space: LiveScenario, policy: str, pod: str) -> None:
    """A restarted container recreates the group (R-POD-3, R-POD-4, R-POD-5, R-POD-9)."""
    before = await space.bring_up(lws(replicas=3, size=3, template={"restartPolicy": policy}))
    await space.fail(pod)
    await replaced(space, before, "web-1", "web-1-1", "web-1-2")


@pytest.mark.parametrize(("pod", "recreations"), [("web-1", 0), ("web-1-2", 1)], ids=["leader", "worker"])
async def test_deleted_pod_recreates_the_group(space: LiveScenario, pod: str, recreations: int) -> None:
    """If the leader is deleted, no other object must be deleted (R-POD-4, R-POD-10, R-POD-11)."""
    before = await space.bring_up(lws(replicas=3, size=3))
    await space.delete(pod, PODS)
    state = await replaced(space, before, "web-1", "web-1-1", "web-1-2")
    assert len(state.notes("RecreateGroup")) <= recreations, "\n".join(space.story())


async def test_evicted_pod_recreates_the_group(space: LiveScenario) -> None:
    """A drain of a node deletes pods (R-POD-4)."""
    before = await space.bring_up(lws(replicas=2, size=3))
    await space.evict("web-0-1")
    await replaced(space, before, "web-0", "web-0-1", "web-0-2")


async def test_recreation_records_an_event(space: LiveScenario) -> None:
    """A recreation records an event (R-POD-5 step 6, contract 8.3)."""
    before = await space.bring_up(lws(replicas=2, size=2))
    await space.delete("web-1-1", PODS)
    await replaced(space, before, "web-1", "web-1-1")
    note = "Worker pod web-1-1 failed, deleted leader pod web-1 to recreate group 1"
    state = await space.until(lambda state: assert_notes(state, [note]))
    (event,) = [one for one in state.events.values() if one["reason"] == "RecreateGroup"]
    assert (event["type"], event["action"]) == ("Normal", "Delete")
    assert (event["related"]["kind"], event["related"]["name"]) == ("Pod", "web-1")
    assert event["reportingController"] == "leaderworkerset"


async def test_container_restarts_alone_under_policy_none(space: LiveScenario) -> None:
    """With policy None, a container restarts alone (R-POD-3)."""
    before = await space.bring_up(lws(replicas=2, size=2, template={"restartPolicy": "None"}))
    await space.fail("web-1-1")
    await space.until(
        shows(lambda state: meta.status(state.pods["web-1-1"])["containerStatuses"][0]["restartCount"], 1)
    )
    await replaced(space, before)


@pytest.mark.parametrize("policy", ["None", "Default"])
async def test_deleted_worker_returns_alone_under_policy_none(space: LiveScenario, policy: str) -> None:
    """Policy Default equals None (R-POD-3, R-DEF-1)."""
    before = await space.bring_up(lws(replicas=2, size=3, template={"restartPolicy": policy}))
    await space.delete("web-1-1", PODS)
    await replaced(space, before, "web-1-1")


async def test_deleted_leader_removes_its_workers_under_policy_none(space: LiveScenario) -> None:
    """Workers belong to their leader pod (R-ARC-4, R-WSTS-7)."""
    before = await space.bring_up(lws(replicas=2, size=3, template={"restartPolicy": "None"}))
    await space.delete("web-1", PODS)
    await replaced(space, before, "web-1", "web-1-1", "web-1-2")


async def test_workers_wait_for_the_names_of_old_workers(space: LiveScenario) -> None:
    """The StatefulSet controller could not create the new worker while the old worker terminates (ADR 45)."""
    before = await space.bring_up(lws(replicas=1, size=3, template={"restartPolicy": "None"}))
    await space.patch({"metadata": {"finalizers": ["example.com/slow"]}}, "web-0-1", resource=PODS)
    await space.delete("web-0", PODS)

    def is_new(state: State) -> None:
        assert meta.uid(state.pods["web-0"]) != meta.uid(before.pods["web-0"])
        assert "web-0-2" not in state.pods
        assert is_ready(state.pods["web-0"])

    await space.until(is_new)
    cause = await named(space, "LWS-E107", late=timedelta(hours=-1))  # within the grace period
    assert cause.sentence == "group 0: its new workers wait until previous pod web-0-1 has terminated"
    await space.scale(2)
    state = await space.until(shows(lambda state: is_ready(state.pods["web-1-2"]), True))
    assert sorted(state.statefulsets) == ["web", "web-1"]
    await space.patch({"metadata": {"finalizers": None}}, "web-0-1", resource=PODS)
    await space.settled()


@pytest.mark.parametrize(
    ("policy", "annotations"),
    [
        ("RecreateGroupAfterStart", {}),
        ("RecreateGroupOnPodRestart", {labels.RECREATE_GROUP_AFTER_START: "false"}),
    ],
    ids=["policy", "annotation"],
)
async def test_pending_group_is_not_recreated_after_start_policy(
    space: LiveScenario, policy: str, annotations: dict[str, str]
) -> None:
    """Failures do not recreate the group while a pod is pending (R-POD-5 steps 1 and 2, Q-19, Q-31)."""
    await space.create(crowded(policy, annotations))
    before = await space.until(assert_one_pending)
    await space.delete(placed_worker(before), PODS)

    def is_replaced(state: State) -> None:
        assert_one_pending(state)
        kept = {pod for pod, uid in state.uids("web").items() if before.uids("web")[pod] == uid}
        assert kept == state.pods.keys() - {placed_worker(before)}

    await space.until(is_replaced)
    assert not any(meta.is_deleting(change.object) for change in space.changes if meta.name(change.object) == "web-0")


async def test_pending_group_is_recreated_by_default(space: LiveScenario) -> None:
    """RecreateGroupOnPodRestart recreates a complete or incomplete group (R-POD-5)."""
    await space.create(crowded("RecreateGroupOnPodRestart", {}))
    before = await space.until(assert_one_pending)
    await space.delete(placed_worker(before), PODS)

    def are_replaced(state: State) -> None:
        assert_one_pending(state)
        assert not before.uids("web").items() & state.uids("web").items()

    await space.until(are_replaced)


def crowded(policy: str, annotations: dict[str, str]) -> JSONObject:
    """Return a group of three pods whose two workers require exclusive use of the same node."""
    hostname = "kubernetes.io/hostname"
    apart = {"labelSelector": {"matchLabels": {"role": "worker"}}, "topologyKey": hostname}
    worker = pod_template(
        nodeSelector={hostname: "node-0"},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    )
    worker["metadata"] = {"labels": {"role": "worker"}}
    template = {"leaderTemplate": pod_template(), "workerTemplate": worker, "restartPolicy": policy}
    return lws(replicas=1, size=3, template=template, annotations=annotations)


def placed_worker(state: State) -> str:
    """Return the worker that runs on the node."""
    (name,) = [pod for pod in ("web-0-1", "web-0-2") if is_ready(state.pods[pod])]
    return name


def assert_one_pending(state: State) -> None:
    """Assert that all three pods exist, and that one worker is unscheduled."""
    assert state.of("web").keys() == {"web-0", "web-0-1", "web-0-2"}
    unready = {pod for pod, obj in state.pods.items() if not is_ready(obj)}
    assert len(unready) == 1
    assert unready < {"web-0-1", "web-0-2"}


async def test_twenty_deleted_workers_recreate_each_group_once(space: LiveScenario) -> None:
    """Each group is recreated exactly once, and no other pod is deleted (R-POD-5, R-POD-8, R-POD-10)."""
    before = await space.bring_up(lws(replicas=GROUPS + 5, size=3))
    space.changes.clear()
    for index in range(GROUPS):
        await space.delete(f"web-{index}-2", PODS)
    hit = {name for index in range(GROUPS) for name in (f"web-{index}", f"web-{index}-1", f"web-{index}-2")}
    await replaced(space, before, *hit)
    assert sorted(created_leaders(space)) == sorted(f"web-{index}" for index in range(GROUPS))
    text = "Worker pod web-{0}-2 failed, deleted leader pod web-{0} to recreate group {0}"
    notes = [text.format(index) for index in range(GROUPS)]
    await space.until(lambda state: assert_notes(state, notes))
