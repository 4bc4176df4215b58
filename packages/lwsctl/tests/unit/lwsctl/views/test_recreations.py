"""Tests that recreated groups show the count, the reason, and the next recreation time (docs/adr/0003)."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.builders import rank_pod

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.model import leaderworkerset as sets
from lwsctl.model.events.warningevents import Evidence, explain_views
from lwsctl.model.failurehistory import Recreations
from lwsctl.views import recreations
from lwsctl.views.document import document
from lwsctl.views.reasons import summary

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
LWS: JSONObject = {
    "metadata": {"name": "web", "namespace": "prod"},
    "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 1}},
}


def record(due: datetime, count: int = 3, **changed: str) -> JSONObject:
    told = {
        labels.RECREATIONS: str(count),
        labels.RECREATED_LEADER: "old",
        labels.RECREATE_AFTER: due.isoformat(),
        labels.FAILED_POD: "web-1-1",
        labels.TEMPLATE_REVISION_HASH: "r1",
    }
    own = {labels.NAME: "web", labels.GROUP_INDEX: "1"}
    return {
        "metadata": {"name": "web-1-recreations", "namespace": "prod", "labels": own, "annotations": told | changed}
    }


def shown(pod: JSONObject, *records: JSONObject) -> tuple[Recreations | None, ...]:
    (view,) = explain_views([sets.view(LWS, [pod])], Evidence(records=records), NOW)
    return tuple(group.recreations for group in view.groups)


def test_record_applies_to_its_own_group_only() -> None:
    due = NOW - timedelta(minutes=3)
    assert shown(rank_pod(1, size=1, ready=False, metadata={"uid": "new"}), record(due)) == (
        None,
        Recreations(count=3, failed_pod="web-1-1", failed_rank=1, due=due),
    )


def test_leader_with_a_pending_recreation_waits() -> None:
    due = NOW + timedelta(seconds=18)
    assert shown(rank_pod(1, size=1, ready=False, metadata={"uid": "old"}), record(due))[1] == Recreations(
        count=3, failed_pod="web-1-1", failed_rank=1, due=due, is_waiting=True
    )
    deleted = rank_pod(1, size=1, ready=False, metadata={"uid": "old", "deletionTimestamp": "2026-01-01T12:00:00Z"})
    assert shown(deleted, record(due))[1] == Recreations(count=3, failed_pod="web-1-1", failed_rank=1, due=due)


@pytest.mark.parametrize(
    "changed",
    [
        {labels.RECREATIONS: "many"},
        {labels.RECREATE_AFTER: "soon"},
        {labels.RECREATE_AFTER: "2026-01-01T00:00:00"},
        {labels.TEMPLATE_REVISION_HASH: "r0"},
    ],
    ids=["no number", "no time", "no zone", "another revision"],
)
def test_unreadable_or_foreign_record_is_ignored(changed: dict[str, str]) -> None:
    unreadable = record(NOW)
    unreadable["metadata"]["annotations"] |= changed
    assert shown(rank_pod(1, size=1, ready=False, metadata={"uid": "new"}), unreadable) == (None, None)


def test_next_attempt_that_is_due_is_now() -> None:
    told = Recreations(count=2, failed_pod="web-1-1", due=NOW, is_waiting=True)
    assert recreations.sentence(told, NOW) == "recreated 1 time; pod web-1-1 failed again, next attempt now"


def test_summaries_and_documents_have_recreations() -> None:
    (view,) = explain_views(
        [sets.view(LWS, [rank_pod(1, size=1, ready=False, metadata={"uid": "old"})])],
        Evidence(records=[record(NOW + timedelta(seconds=18))]),
        NOW,
    )
    assert summary(view, view.groups[1], NOW) == (
        "web group 1: 0 of 1 rank ready (1 Running); recreated 2 times; pod web-1-1 failed again, next attempt in 18s"
    )
    first, second = document([view])["items"][0]["groups"]
    assert first["recreations"] is None
    assert second["recreations"] == {
        "count": 3, "failedPod": "web-1-1", "due": "2026-01-01T12:00:18+00:00", "waiting": True,
        "exhausted": False, "failure": "",
    }  # fmt: skip


def test_exhausted_group_gives_its_reason() -> None:
    found = record(NOW)
    found["metadata"]["annotations"] |= {
        labels.RECREATION_STATE: "exhausted",
        labels.FAILURE: "main: exit code 1, Error",
    }
    mark = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}
    kept = rank_pod(
        1,
        size=1,
        ready=False,
        metadata={"uid": "old", "deletionTimestamp": "2026-01-01T12:00:00Z", "annotations": mark},
    )
    (view,) = explain_views([sets.view(LWS, [kept])], Evidence(records=[found]), NOW)
    assert [group.is_exhausted for group in view.groups] == [False, True]
    assert summary(view, view.groups[1], NOW) == (
        "web group 1: 0 of 1 rank ready (1 Terminating); recreated 2 times; pod web-1-1 failed again"
        " (main: exit code 1, Error), and no restarts remain; the pods are kept for diagnosis"
    )


@pytest.mark.parametrize("state", ["waiting", "exhausted"])
def test_recreation_by_others_is_not_reported(state: str) -> None:
    found = record(NOW + timedelta(minutes=5))
    found["metadata"]["annotations"] |= {labels.RECREATION_STATE: state}
    assert shown(rank_pod(1, size=1, ready=False, metadata={"uid": "another"}), found) == (None, None)
    assert shown(
        rank_pod(1, size=1, ready=False, metadata={"uid": "old", "deletionTimestamp": "2026-01-01T12:00:00Z"}), found
    ) == (
        None,
        None,
    )
    told = shown(rank_pod(1, size=1, ready=False, metadata={"uid": "old"}), found)[1]
    assert told is not None
    assert (told.is_waiting, told.is_exhausted) == (state == "waiting", state == "exhausted")
