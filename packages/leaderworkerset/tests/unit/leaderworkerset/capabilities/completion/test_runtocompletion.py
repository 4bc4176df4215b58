"""Tests that groups that run to completion are detected and not restarted (docs/adr/0026)."""

from datetime import timedelta
from typing import Any

import pytest
from tests import builders, decisions

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Delete, Patch
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.capabilities import deciding
from leaderworkerset.capabilities.completion import runtocompletion
from leaderworkerset.core.leaderworkerset import groupstate, status
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.policies import failures
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.restarts import retention

COMPLETES = {labels.RUN_TO_COMPLETION: "true"}
LWS = builders.leaderworkerset_object(replicas=2, size=2, metadata={"annotations": COMPLETES})
LEADER = builders.leader_pod(LWS)
WORKER = builders.worker_pod(LEADER)
SET = builders.worker_statefulset(LEADER)
KEY = builders.key_of(LWS)


def annotated(more: dict[str, str]) -> JSONObject:
    return builders.leaderworkerset_object(replicas=2, size=2, metadata={"annotations": COMPLETES | more})


def container(code: int | None, *, restarts: int = 0, name: str = "main", when: str = "state") -> JSONObject:
    ended = {} if code is None else {when: {"terminated": {"exitCode": code}}}
    return {"name": name, "restartCount": restarts} | ended


def with_containers(pod: JSONObject, *containers: JSONObject, **further: Any) -> JSONObject:
    return pod | {"status": pod["status"] | {"containerStatuses": [*containers]} | further}


def ended(leader: JSONObject, end: GroupEnd, **metadata: Any) -> JSONObject:
    annotations = meta.annotations(leader) | {labels.GROUP_ENDED: end.value}
    return leader | {
        "metadata": leader["metadata"] | {"annotations": annotations, "finalizers": [retention.FINALIZER]} | metadata
    }


def group(leader: JSONObject, *workers: JSONObject, lws: JSONObject = LWS, **fields: Any) -> LiveGroup:
    return builders.whole_group(*workers, lws=lws, leader=leader, service=builders.SETTLED, **fields)


@pytest.mark.parametrize(
    ("containers", "is_complete"),
    [
        ((), False),
        ((container(None),), False),
        ((container(0),), True),
        ((container(0, restarts=1, when="lastState"),), True),
        ((container(1),), False),
        ((container(0), container(None, name="log")), False),
        ((container(0), container(0, name="log")), True),
        ((container(0), container(2, name="log")), False),
    ],
)
def test_group_is_complete_when_all_leader_containers_exit_0(
    containers: tuple[JSONObject, ...], *, is_complete: bool
) -> None:
    leader = with_containers(LEADER, *containers)
    assert runtocompletion.has_succeeded(leader) is is_complete
    found = runtocompletion.group_result(leaderworkerset.decode(LWS), leader, (), builders.NOW)
    assert (found is GroupEnd.COMPLETE) is is_complete
    other = builders.leaderworkerset_object()
    assert runtocompletion.group_result(leaderworkerset.decode(other), leader, (), builders.NOW) is None


def test_completed_leader_is_marked_and_ends_with_its_workers() -> None:
    leader = with_containers(LEADER, container(0, restarts=1, when="lastState"))
    marked, deleted = deciding.reconcile_group(group(leader, WORKER)).actions
    assert isinstance(marked, Patch)
    assert marked.patch["metadata"]["annotations"][labels.GROUP_ENDED] == "Complete"
    assert marked.patch["metadata"]["finalizers"] == [retention.FINALIZER]
    assert isinstance(deleted, Delete)
    assert (deleted.uid, deleted.propagation) == (meta.uid(LEADER), "Foreground")
    assert [event.reason for event in deleted.on_success] == ["GroupComplete"]

    over = ended(leader, GroupEnd.COMPLETE)
    assert deciding.reconcile_group(group(over, WORKER)).actions == (deleted,)
    going = ended(leader, GroupEnd.COMPLETE, deletionTimestamp=timestamps.render(builders.NOW))
    assert deciding.reconcile_group(group(going)).actions == ()


def test_queued_leader_gets_the_marks_that_kueue_reads() -> None:
    """Without the labels, Kueue never finishes the Workload of a group (R-KQ-12, R-KQ-34)."""
    queued = LEADER | {"metadata": LEADER["metadata"] | {"labels": meta.labels(LEADER) | {labels.QUEUE_NAME: "team"}}}
    for leader, marks in ((queued, {labels.POD_GROUP_SERVING: None, labels.RETRIABLE_IN_GROUP: "false"}), (LEADER, {})):
        written = runtocompletion.mark_finished(leader, GroupEnd.COMPLETE).patch["metadata"]["annotations"]
        assert written == {labels.GROUP_ENDED: "Complete", labels.RECOVER: None} | marks


def test_group_that_runs_again_loses_its_finalizer() -> None:
    over = ended(LEADER, GroupEnd.COMPLETE)
    again = over | {"metadata": over["metadata"] | {"annotations": meta.annotations(over) | {labels.RECOVER: "true"}}}
    assert deciding.reconcile_group(group(again)).actions == ()
    assert retention.release_pod(again).patch["metadata"]["annotations"][labels.GROUP_ENDED] is None


@pytest.mark.parametrize(
    ("statuses", "has_failed"),
    [
        ({"containerStatuses": [container(0, restarts=1, when="lastState")]}, False),
        ({"containerStatuses": [container(1, restarts=1, when="lastState")]}, True),
        ({"containerStatuses": [container(None, restarts=1)]}, True),
        ({"containerStatuses": [container(1, when="state")]}, False),
        ({"initContainerStatuses": [container(1, restarts=1, when="state")]}, True),
    ],
)
def test_rank_that_exited_0_and_restarted_has_not_failed(statuses: dict[str, Any], *, has_failed: bool) -> None:
    """For workloads that run to completion, this differs from R-POD-4, where each restart is a failure."""
    worker = WORKER | {"status": WORKER["status"] | statuses}
    members = builders.live_group(leader=LEADER, pods=(LEADER, worker), statefulsets=(SET,))
    assert bool(failures.failed_pods(leaderworkerset.decode(LWS), members, [runtocompletion.excuses])) is has_failed
    going = worker | {"metadata": worker["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}
    gone = builders.live_group(leader=LEADER, pods=(LEADER, going), statefulsets=(SET,))
    assert failures.failed_pods(leaderworkerset.decode(LWS), gone, [runtocompletion.excuses])


def created(seconds: float) -> JSONObject:
    revision = builders.revision(LWS)
    at = timestamps.render(builders.NOW - timedelta(seconds=seconds))
    return revision | {"metadata": revision["metadata"] | {"creationTimestamp": at}}


def test_deadline_counts_from_the_creation_of_the_revision() -> None:
    lws = annotated({labels.COMPLETION_DEADLINE: "1h"})
    early = deciding.reconcile_group(group(LEADER, WORKER, lws=lws, revisions=(created(3000),)))
    assert early.actions == ()
    assert early.requeue_after == 600
    late = deciding.reconcile_group(group(LEADER, WORKER, lws=lws, revisions=(created(3600),)))
    marked, deleted = late.actions
    assert isinstance(marked, Patch)
    assert marked.patch["metadata"]["annotations"][labels.GROUP_ENDED] == "DeadlineExceeded"
    assert isinstance(deleted, Delete)
    assert [(event.type, event.reason) for event in deleted.on_success] == [("Warning", "GroupDeadlineExceeded")]
    assert deciding.reconcile_group(group(LEADER, WORKER, lws=lws, revisions=())).requeue_after is None


def test_next_reconciliation_is_at_the_earlier_moment() -> None:
    lws = annotated({labels.COMPLETION_DEADLINE: "1h"})
    new = group(builders.leader_pod(LWS), lws=lws, statefulsets=(), revisions=(created(10) | {"data": {}},))
    assert deciding.reconcile_group(new).with_requeue_limit(1.0).requeue_after == 1.0


@pytest.mark.parametrize(
    ("ends", "condition"),
    [
        ((None, None), "Available"),
        ((GroupEnd.COMPLETE, None), "Available"),
        ((GroupEnd.COMPLETE, GroupEnd.COMPLETE), "Complete"),
        ((GroupEnd.COMPLETE, GroupEnd.LATE), "Failed"),
        ((None, GroupEnd.LATE), "Failed"),
    ],
)
def test_set_conditions_follow_the_ends_of_groups(ends: tuple[GroupEnd | None, ...], condition: str) -> None:
    leaders = [builders.leader_pod(LWS, index) for index in range(2)]
    shown = [leader if end is None else ended(leader, end) for leader, end in zip(leaders, ends, strict=True)]
    facts = [groupstate.describe(leader, builders.worker_statefulset(leader)) for leader in shown]
    lws = leaderworkerset.decode(LWS)
    found = status.assess(lws, {"status": {"replicas": 2}}, index_groups(facts, "web"), KEY, builders.NOW)
    held = [one.type for one in found.status.conditions if one.status == "True"]
    assert held == [condition]
    assert found.status.ready_replicas == ends.count(None)
    assert [group.result for group in facts] == [*ends]


def test_unknown_exit_is_ignored() -> None:
    strange = LEADER | {"metadata": LEADER["metadata"] | {"annotations": {labels.GROUP_ENDED: "whatever"}}}
    assert groupname.group_result(strange) is None
    assert not groupname.is_finished(strange)


def finished(seconds: float, annotations: dict[str, str], *, generation: int = 1) -> JSONObject:
    at = timestamps.render(builders.NOW - timedelta(seconds=seconds))
    condition = {
        "type": "Complete",
        "status": "True",
        "reason": "AllGroupsComplete",
        "message": "",
        "lastTransitionTime": at,
        "observedGeneration": generation,
    }
    return annotated(annotations) | {"status": {"conditions": [condition], "observedGeneration": generation}}


def test_completed_set_is_deleted_after_its_ttl() -> None:
    ttl = {labels.TTL_AFTER_FINISHED: "1m"}
    (action,) = decisions.reconcile(ObservedLeaderWorkerSet(leaderworkerset=finished(60, ttl)), builders.NOW).actions
    assert isinstance(action, Delete)
    assert (action.uid, action.key.name) == (meta.uid(LWS), "web")
    assert [event.reason for event in action.on_success] == ["TTLAfterFinished"]

    waiting = decisions.reconcile(ObservedLeaderWorkerSet(leaderworkerset=finished(20, ttl)), builders.NOW)
    assert waiting.requeue_after == 40
    assert not [one for one in waiting.actions if isinstance(one, Delete)]


@pytest.mark.parametrize(
    "lws",
    [
        finished(600, {}),
        finished(600, {labels.TTL_AFTER_FINISHED: "1m"}, generation=0),
        annotated({labels.TTL_AFTER_FINISHED: "1m"}),
    ],
    ids=["no time", "of an earlier spec", "not ended"],
)
def test_set_without_an_expired_ttl_is_kept(lws: JSONObject) -> None:
    found = runtocompletion.time_until_expiry(leaderworkerset.decode(lws), ("Complete", "Failed"), builders.NOW)
    assert found is None


def test_groups_with_random_keys_do_not_run_to_completion() -> None:
    lws = builders.hash_object(metadata={"annotations": COMPLETES})
    assert not runtocompletion.settings_of(leaderworkerset.decode(lws)).runs_to_completion
