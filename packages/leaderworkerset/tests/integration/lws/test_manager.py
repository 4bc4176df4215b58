"""Tests that idle controllers do not write, and that they can stop at any time."""

import pytest
from testkit.clusters.recording import RecordingTransport
from tests.integration.clusters.managed import LocalManager
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, pod_names, revision_of, revisions_of

from kuberuntime.objects import meta


def recording(space: LiveScenario) -> RecordingTransport:
    """Return a recorder of the manager's writes in this process."""
    assert isinstance(space.manager, LocalManager)
    return space.manager.recording


def creations(space: LiveScenario) -> list[str]:
    """Return the name of each created pod, once per creation."""
    return sorted(meta.name(change.object) for change in space.changes if change.old is None)


async def test_restarted_controllers_change_nothing(space: LiveScenario) -> None:
    """After reconciliation, no object changes, including leader StatefulSets (R-STAT-3, R-ARC-6)."""
    await space.create(lws("web", replicas=3, size=3))
    await space.create(lws("other", replicas=2, size=1, networkConfig={"subdomainPolicy": "UniquePerReplica"}))
    await space.settled("web")
    await space.settled("other")
    await space.manager.stop()
    before = await space.versions()
    recording(space).writes.clear()
    await space.manager.start()
    await space.bring_up(lws("later", replicas=1, size=2))
    writes = recording(space).writes_in(space.namespace)
    assert [write for write in writes if "/web" in write or "/other" in write] == []
    after = await space.versions()
    assert {name: version for name, version in after.items() if name in before} == before


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_interrupted_scale_up_is_completed(space: LiveScenario, end: str) -> None:
    """No object is created twice, and none is missing (R-ARC-2, R-WSTS-2)."""
    await space.bring_up(lws(replicas=2, size=3))
    space.changes.clear()
    await space.edit(replicas=12)

    def has_begun(state: State) -> None:
        assert {f"web-{index}" for index in range(3, 12)} & state.statefulsets.keys()

    await space.until(has_begun)
    await (space.manager.stop() if end == "stop" else space.manager.kill())
    await space.manager.start()
    await space.settled()
    assert creations(space) == sorted(pod_names("web", 12, 3) - pod_names("web", 2, 3))


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_interrupted_rollout_is_completed(space: LiveScenario, at: int) -> None:
    """Each group is replaced once, and no additional revision remains (R-ROLL-7, Q-6, Q-32)."""
    before = await space.bring_up(lws(replicas=4, size=2))
    space.changes.clear()
    await space.edit_template(workerTemplate=pod_template("app:2"))

    def is_under_way(state: State) -> None:
        new = {pod for pod, uid in state.uids("web").items() if before.uids("web").get(pod) != uid}
        assert len(new) >= at

    await space.until(is_under_way)
    await space.manager.kill()
    await space.manager.start()
    state = await space.settled()
    assert creations(space) == sorted(pod_names("web", 4, 2))
    (revision,) = revisions_of(state, "web")
    assert revision["revision"] == 2


@pytest.mark.parametrize("step", range(1, 8))
async def test_interrupted_creation_is_completed(space: LiveScenario, step: int) -> None:
    """Existing objects are adopted and not recreated (R-STAT-2, R-SVC-4, R-REV-10)."""
    await space.manager.stop()
    await space.create(lws(replicas=3, size=3))
    reached = recording(space).write_number(step)
    await space.manager.start()
    await reached.wait()
    await space.manager.kill()
    await space.manager.start()
    state = await space.settled()
    assert creations(space) == sorted(pod_names("web", 3, 3))
    assert [revision_of(one) for one in revisions_of(state, "web")] == [revision_of(state.statefulsets["web"])]


async def test_restart_during_an_outage_recreates_the_group_later(space: LiveScenario) -> None:
    """Restart counts are preserved, so that controllers can read them after an outage (R-POD-4)."""
    before = await space.bring_up(lws(replicas=2, size=2))
    await space.manager.stop()
    await space.fail("web-1-1")

    def has_restarted(state: State) -> None:
        assert meta.status(state.pods["web-1-1"])["containerStatuses"][0]["restartCount"] == 1
        assert is_ready(state.pods["web-1-1"])

    await space.until(has_restarted)
    await space.manager.start()

    def is_replaced(state: State) -> None:
        assert not before.uids("web").items() & {(pod, meta.uid(obj)) for pod, obj in state.group("web", 1).items()}

    await space.until(is_replaced)
    after = await space.settled()
    assert {pod for pod, _ in before.uids("web").items() & after.uids("web").items()} == pod_names("web", 1, 2)


async def test_two_active_managers_create_no_duplicates(space: LiveScenario) -> None:
    """If a lease expires unnoticed, two concurrent managers create each object once (R-WSTS-2, R-SVC-4)."""
    async with space.second_manager():
        await space.bring_up(lws(replicas=6, size=3))
        await space.edit_template(workerTemplate=pod_template("app:2"))
        state = await space.settled()
    assert creations(space) == sorted([*pod_names("web", 6, 3), *pod_names("web", 6, 3)])
    (revision,) = revisions_of(state, "web")
    assert revision["revision"] == 2
