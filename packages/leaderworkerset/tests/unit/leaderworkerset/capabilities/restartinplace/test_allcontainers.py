"""Tests that permitted restarts of all containers in a pod are tolerated for the permitted time."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Apply, Delete, Patch, Plan, flatten
from leaderworkerset.api import labels
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.capabilities.restartinplace import allcontainers
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.policies.recreation import RestartSettings

ALL = {"lastState": {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers"}}}
ALONE = {"lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}
OBJECT = builders.leaderworkerset_object(metadata={"annotations": {labels.IN_PLACE_RESTARTS: "120s"}})
LEADER = builders.leader_pod(OBJECT)
SET = builders.worker_statefulset(LEADER)


def restarted(count: int = 1, note: str = "", *, how: JSONObject = ALL, ready: bool = False) -> JSONObject:
    """Return a worker whose two containers restarted this number of times, the last time in this way."""
    pod = builders.worker_pod(LEADER, restarts=count, init_restarts=count, ready=ready)
    for kind in ("containerStatuses", "initContainerStatuses"):
        pod["status"][kind] = [one | how for one in pod["status"][kind]]
    if note:
        pod["metadata"]["annotations"] = {labels.RESTARTED_IN_PLACE: note}
    return pod


def group(*workers: JSONObject, obj: JSONObject = OBJECT, **fields: Any) -> LiveGroup:
    pods = (LEADER, *workers)
    return builders.live_group(
        leader=LEADER, obj=obj, pods=pods, statefulsets=(SET,), service=builders.SETTLED, **fields
    )


def written(plan: Plan) -> dict[str, str]:
    """Return the annotations that a plan writes, by pod name."""
    patches = [one for one in flatten(plan.actions) if isinstance(one, Patch)]
    return {one.key.name: one.patch["metadata"]["annotations"][labels.RESTARTED_IN_PLACE] for one in patches}


def recreates(plan: Plan) -> bool:
    return any(isinstance(one, Delete) for one in plan.actions)


def at(seconds: float) -> str:
    return (builders.NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_restart_in_place_is_a_failure_without_the_annotation() -> None:
    """Without the annotation, a restart in place is a failure (R-POD-4)."""
    plan = reconcile(group(restarted(), obj=builders.leaderworkerset_object()))
    assert recreates(plan)
    assert written(plan) == {}
    (recorded,) = [one for one in plan.actions if isinstance(one, Apply)]
    assert "RestartingAllContainers" in meta.annotations(recorded.object)[labels.FAILURE]


@pytest.mark.parametrize("note", ["1", f"1={at(-500)}"], ids=["was ready", "is not ready"])
def test_recorded_restart_is_expected_without_the_annotation(note: str) -> None:
    """Otherwise, all groups with such pods would be recreated when the annotation is removed."""
    without = builders.leaderworkerset_object()
    assert not recreates(reconcile(group(restarted(note=note), obj=without)))
    assert recreates(reconcile(group(restarted(2, note=note), obj=without)))


def test_restart_in_place_is_noted_with_its_time() -> None:
    plan = reconcile(group(restarted()))
    assert not recreates(plan)
    assert written(plan) == {"web-0-1": f"1={at(0)}"}
    (event,) = [event for one in flatten(plan.actions) if isinstance(one, Patch) for event in one.on_success]
    assert event.reason == "RestartedInPlace"
    assert event.note == "Pod web-0-1 restarted all its containers in place (restart 1). It must be ready within 120 s"
    assert plan.requeue_after == 120
    again = reconcile(group(restarted(note=f"1={at(-20)}")))
    assert written(again) == {}
    assert again.requeue_after == 100


@pytest.mark.parametrize("note", ["1", f"1={at(-500)}"], ids=["was ready", "becomes ready"])
def test_ready_pod_gets_the_full_time_at_the_next_restart(note: str) -> None:
    ready = reconcile(group(restarted(note=note, ready=True)))
    assert written(ready) == ({} if note == "1" else {"web-0-1": "1"})
    assert not recreates(ready)
    assert ready.requeue_after is None
    second = reconcile(group(restarted(2, note="1")))
    assert written(second) == {"web-0-1": f"2={at(0)}"}


def test_unready_pod_gets_no_more_time_at_the_next_restart() -> None:
    plan = reconcile(group(restarted(3, note=f"2={at(-100)}")))
    assert written(plan) == {"web-0-1": f"3={at(-100)}"}
    assert plan.requeue_after == 20


def test_pod_that_exceeds_its_time_has_failed() -> None:
    plan = reconcile(group(restarted(note=f"1={at(-120)}")))
    deleted, recorded = plan.actions
    assert isinstance(deleted, Delete)
    assert isinstance(recorded, Apply)
    told = meta.annotations(recorded.object)
    assert told[labels.FAILED_POD] == "web-0-1"
    assert told[labels.FAILURE] == "not ready 120 s after it restarted all its containers in place"


def test_late_pod_uses_a_restart_of_its_group() -> None:
    """A delayed pod uses one restart of its group's limit (N-RB-3)."""
    limited = replace(RestartSettings(), max_restarts=1)
    counts = (labels.GROUP_RESTART_COUNTS,)
    for note, is_late in ((f"1={at(-10)}", False), (f"1={at(-121)}", True)):
        plan = reconcile(group(restarted(note=note), facts={names.BACKOFF: limited}))
        patched = [one for one in flatten(plan.actions) if isinstance(one, Patch)]
        assert any(set(counts) & meta.annotations(one.patch).keys() for one in patched) is is_late


@pytest.mark.parametrize(
    "worker",
    [
        restarted(2, how=ALONE),
        restarted(1, how={}),
        builders.worker_pod(LEADER, deleting=True),
    ],
    ids=["restarted alone after it", "nothing is known of its end", "deleted"],
)
def test_other_failures_recreate_the_group(worker: JSONObject) -> None:
    """Other failures recreate the group (R-POD-4)."""
    assert recreates(reconcile(group(worker)))


def test_failure_message_names_the_container_that_failed_first() -> None:
    worker = restarted(1)
    worker["status"]["containerStatuses"][0] |= ALONE | {"restartCount": 2}
    (recorded,) = [one for one in reconcile(group(worker)).actions if isinstance(one, Apply)]
    assert meta.annotations(recorded.object)[labels.FAILURE] == "main: exit code 1, Error"


def test_note_from_the_future_counts_from_now() -> None:
    plan = reconcile(group(restarted(note=f"1={at(3600)}")))
    assert written(plan) == {"web-0-1": f"1={at(0)}"}
    assert plan.requeue_after == 120


def test_pods_unready_for_other_reasons_are_ignored() -> None:
    plan = reconcile(group(restarted(note="1")))
    assert plan == Plan()


@pytest.mark.parametrize("text", ["1s", "120s", "24h"])
def test_restart_deadline_is_accepted(text: str) -> None:
    assert list(allcontainers.errors(builders.annotated({labels.IN_PLACE_RESTARTS: text}))) == []


@pytest.mark.parametrize("text", ["", "true", "off", "0s", "25h", "120"])
def test_invalid_restart_deadline_is_rejected_and_ignored(text: str) -> None:
    (error,) = allcontainers.errors(builders.annotated({labels.IN_PLACE_RESTARTS: text}))

    assert error.path == f"metadata.annotations.{labels.IN_PLACE_RESTARTS}"
    assert allcontainers.time_to_ready({labels.IN_PLACE_RESTARTS: text}) is None
