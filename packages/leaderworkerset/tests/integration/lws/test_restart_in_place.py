"""Tests pods that restart all containers in place, with and without permission to do so (ADR 27)."""

import pytest
from tests.integration.clusters.objects import lws, restarting_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready
from tests.integration.clusters.versions import skip_without
from tests.integration.lws.recreation import replaced

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import kubernetesfeatures, labels, restartannotation
from leaderworkerset.api.restartannotation import InPlaceRestarts


@pytest.fixture(autouse=True)
def rule(request: pytest.FixtureRequest) -> None:
    """Skip these tests if the API server drops or rejects the container restart rule."""
    skip_without(request, kubernetesfeatures.RESTART_ALL)


def restarting(deadline: str | None, *, gated: bool = False) -> JSONObject:
    """Return a LeaderWorkerSet of two groups whose pods may restart in place and be ready within this time."""
    annotations = {labels.IN_PLACE_RESTARTS: deadline} if deadline else None
    template = {"workerTemplate": restarting_template(gated=gated)}
    return lws(replicas=2, size=2, annotations=annotations, template=template)


def has_restarted(state: State, pod: str, times: int) -> None:
    """Check that all containers of the pod restarted `count` times, and that the pod is ready."""
    found = state.pods[pod]
    counts = {one["name"]: one["restartCount"] for one in meta.status(found)["containerStatuses"]}
    assert counts == {"main": times, "watcher": times}
    assert is_ready(found)
    assert restartannotation.read(found) == InPlaceRestarts(times)


async def test_group_continues_when_pods_restart_in_place(space: LiveScenario) -> None:
    """Such restarts are not failures (R-POD-4). The last restart is also reported."""
    before = await space.bring_up(restarting("120s"))
    for times, pod in ((1, "web-1-1"), (1, "web-0"), (2, "web-1-1")):
        await space.restart_all(pod)
        await space.until(lambda state, pod=pod, times=times: has_restarted(state, pod, times))  # type: ignore[misc]

    def is_reported(state: State) -> None:
        told = state.notes("RestartedInPlace")
        assert any(note.startswith("Pod web-1-1 restarted all its containers in place (restart 2)") for note in told)

    await space.until(is_reported)
    after = await replaced(space, before)
    assert after.notes("RecreateGroup") == []


async def test_restart_of_one_container_recreates_the_group(space: LiveScenario) -> None:
    """A restart of a single container recreates the group (R-POD-4)."""
    before = await space.bring_up(restarting("120s"))
    await space.restart_all("web-1-1")
    await space.until(lambda state: has_restarted(state, "web-1-1", 1))
    await space.fail("web-1-1")
    await replaced(space, before, "web-1", "web-1-1")


async def test_restart_in_place_recreates_without_the_annotation(space: LiveScenario) -> None:
    """Without the annotation, the restart recreates the group, as in the Go controller (R-POD-4)."""
    before = await space.bring_up(restarting(None))
    await space.restart_all("web-1-1")
    await replaced(space, before, "web-1", "web-1-1")


async def test_pod_that_exceeds_its_restart_time_has_failed(space: LiveScenario) -> None:
    """The pod records the time of its restart, for managers that start later."""
    await space.create(restarting("3s", gated=True))
    async with space.releasing():
        before = await space.settled()
    await space.close("web-1-1")
    await space.restart_all("web-1-1")

    def is_noted(state: State) -> None:
        assert restartannotation.read(state.pods["web-1-1"]).started_at is not None

    await space.until(is_noted)
    await space.manager.stop()
    await space.manager.start()

    def is_recreated(state: State) -> None:
        leader = state.pods.get("web-1", {})
        assert meta.is_deleting(leader) or meta.metadata(leader).get("uid") != meta.uid(before.pods["web-1"])

    await space.until(is_recreated)
    async with space.releasing():
        await replaced(space, before, "web-1", "web-1-1")
    record = await space.get(CONTROLLER_REVISIONS, "web-1-recreations")
    why = "not ready 3 s after it restarted all its containers in place"
    assert meta.annotations(record)[labels.FAILURE] == why
