"""Tests runs to completion on both clusters: new templates, the deadline, the time to live, and hangs."""

import re
from typing import Any

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, conditions
from tests.integration.lws.recreation import replaced
from tests.integration.lwsctl.explanations import follow, named, remedy

from kuberuntime.errors import APIError
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels, progressannotations
from leaderworkerset.api.progressannotations import Hang, SilentRank
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts.retention import is_retained
from lwsctl.model.leaderworkerset import view

COMPLETES = {labels.RUN_TO_COMPLETION: "true"}


def holds(condition: str, state: State) -> None:
    assert conditions(state.leaderworkersets["web"])[condition] == "True"


def ended(state: State, condition: str, *pods: str) -> None:
    """Assert that the LeaderWorkerSet has the condition, and that exactly these leader pods remain."""
    holds(condition, state)
    found = state.of("web")
    assert found.keys() == set(pods)
    assert all(is_retained(pod) and meta.is_deleting(pod) for pod in found.values())


async def test_completed_group_is_not_recreated(space: LiveScenario) -> None:
    before = await space.bring_up(lws(replicas=2, size=2, annotations=COMPLETES))
    await space.complete_container("web-1-1")  # a worker that completes first has not failed
    await space.complete_container("web-0")
    await space.until(lambda state: _is_over(state, "web-0"))
    assert not view(space.state.leaderworkersets["web"], space.state.of("web").values()).is_finished
    await space.manager.stop()
    await space.manager.start()
    await space.complete_container("web-1")
    state = await space.until(lambda state: ended(state, "Complete", "web-0", "web-1"))
    assert state.uids("web").items() <= before.uids("web").items()
    assert view(state.leaderworkersets["web"], state.of("web").values()).is_finished
    found = conditions(state.leaderworkersets["web"])
    assert (found["Available"], found["Progressing"]) == ("False", "False")
    assert len(state.notes("GroupComplete")) == 2
    assert state.notes("RecreateGroup") == []

    await space.replace_worker_template(pod_template("app:2"))  # a new template restarts a completed set
    again = await space.settled()
    assert again.uids("web").items().isdisjoint(before.uids("web").items())
    assert conditions(again.leaderworkersets["web"])["Complete"] == "False"
    await space.complete_container("web-0")
    await space.until(lambda state: _is_over(state, "web-0"))
    await space.delete("web")
    await space.until(lambda state: _assert(not state.of("web")))


def _assert(value: object) -> None:
    assert value


def _is_over(state: State, leader: str) -> None:
    """Assert that the leader remains and its workers are deleted."""
    assert meta.annotations(state.pods[leader])[labels.GROUP_ENDED] == "Complete"
    assert meta.is_deleting(state.pods[leader])
    assert f"{leader}-1" not in state.pods


async def test_failed_group_is_recreated_before_completion(space: LiveScenario) -> None:
    before = await space.bring_up(lws(replicas=1, size=2, annotations=COMPLETES))
    await space.fail("web-0")
    await replaced(space, before, "web-0", "web-0-1")
    await space.until(lambda state: holds("Available", state))


@remedy("LWS-E077")
async def test_group_past_its_deadline_runs_again_with_more_time(space: LiveScenario, code: str) -> None:
    await space.create(lws(replicas=1, size=2, annotations=COMPLETES | {labels.COMPLETION_DEADLINE: "3s"}))
    await space.until(lambda state: ended(state, "Failed", "web-0"))
    told = await named(space, code)
    (step,) = (step for step in told.steps if step.startswith("to extend the deadline"))
    assert labels.COMPLETION_DEADLINE in step
    await space.patch({"metadata": {"annotations": {labels.COMPLETION_DEADLINE: "1h"}}})
    await follow(space, told, "to extend the deadline")
    await space.settled()


async def test_group_stops_at_its_deadline_and_set_after_its_ttl(space: LiveScenario) -> None:
    times = {labels.COMPLETION_DEADLINE: "3s", labels.TTL_AFTER_FINISHED: "3s"}
    await space.create(lws(replicas=1, size=2, annotations=COMPLETES | times))
    state = await space.until(lambda state: ended(state, "Failed", "web-0"))
    assert meta.annotations(state.pods["web-0"])[labels.GROUP_ENDED] == "DeadlineExceeded"
    await space.until(lambda state: _assert(not state.leaderworkersets and not state.of("web")))


async def hang(space: LiveScenario, before: State) -> None:
    """Record that a rank of the group hangs."""
    worker = before.pods["web-0-1"]
    since = timestamps.parse(meta.creation_timestamp(worker))
    silent = SilentRank(pod="web-0-1", uid=meta.uid(worker), rank=1, since=since, waits="a lock (futex)")
    text = progressannotations.render_hang(Hang(since=since, ranks=(silent,)))
    await space.patch({"metadata": {"annotations": {labels.HANG: text}}}, "web-0", resource=PODS)


@remedy("LWS-E076")
async def test_restart_resets_the_hang_of_a_group(space: LiveScenario, code: str) -> None:
    before = await space.bring_up(lws(replicas=1, size=2, annotations={labels.PROGRESS_TIMEOUT: "5m"}))
    await hang(space, before)
    await follow(space, await named(space, code), "or recreate the group")
    await replaced(space, before, "web-0", "web-0-1")
    await space.settled()


async def test_hanging_group_is_recreated_when_enabled(space: LiveScenario) -> None:
    watched = {labels.PROGRESS_TIMEOUT: "5m", labels.ON_HANG: "recreate"}
    before = await space.bring_up(lws(replicas=1, size=2, annotations=watched))
    await hang(space, before)
    state = await replaced(space, before, "web-0", "web-0-1")
    assert labels.HANG not in meta.annotations(state.pods["web-0"])
    (note,) = state.notes("RecreateGroup")
    assert "web-0-1 failed" in note


@pytest.mark.parametrize(
    ("annotations", "spec", "told"),
    [
        ({labels.RUN_TO_COMPLETION: "yes"}, {}, "yes.*: must be true, or must not be set"),
        (COMPLETES, {"groupIdentity": "Hash"}, "requires groupIdentity Ordinal"),
        ({labels.ON_HANG: "recreate"}, {}, "requires the annotation .*progress-timeout"),
    ],
)
async def test_invalid_completion_settings_are_rejected(
    space: LiveScenario, annotations: dict[str, str], spec: dict[str, Any], told: str
) -> None:
    (name,) = annotations
    with pytest.raises(APIError, match=rf"metadata\.annotations\.{re.escape(name)}.*{told}"):
        await space.client.create(LEADERWORKERSETS, _in(space, lws(annotations=annotations, **spec)))


def _in(space: LiveScenario, obj: dict[str, Any]) -> dict[str, Any]:
    return obj | {"metadata": obj["metadata"] | {"namespace": space.namespace}}
