"""Tests when a failed group may be recreated (docs/adr/0003-recreation-backoff.md)."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import labels, recreationrecord
from leaderworkerset.api.recreationrecord import Failure, Origin, Recreation, RecreationState
from leaderworkerset.capabilities.backoff.backoffsettings import DEFAULTS
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.recreation import RestartSettings

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS, key="k")
FAILURE = Failure(pod="web-0-1", uid=UID("uid-of-web-0-1"), restarts=2, description="main: exit code 1")
FIRST = Recreation(leader=UID("earlier"), revision="k", count=1, due_at=builders.NOW, failure=FAILURE)


def following(
    previous: Recreation | None,
    seconds: float,
    settings: RestartSettings = DEFAULTS,
    leader: JSONObject = LEADER,
    used: int = 0,
) -> Recreation:
    return recreation.next_recreation(
        previous, leader, FAILURE, settings, builders.NOW + timedelta(seconds=seconds), used
    )


def test_first_recreation_is_due_immediately() -> None:
    assert following(None, 0) == Recreation(
        leader=meta.uid(LEADER), revision="k", count=1, due_at=builders.NOW, failure=FAILURE
    )


def test_second_recreation_within_the_window_waits() -> None:
    second = following(FIRST, 60)

    assert (second.count, second.due_at) == (2, builders.NOW + timedelta(seconds=70))
    assert second.state is RecreationState.WAITING


def test_recreation_by_others_is_not_counted() -> None:
    """A leader may be replaced repeatedly while its group is delayed. Count and time are retained."""
    waiting = following(FIRST, 1)
    for number in range(22):
        leader = builders.leader_pod(LWS, key="k", uid=f"replaced-{number}")
        waiting = following(waiting, 2 + number / 3, leader=leader)
        assert (waiting.count, waiting.due_at) == (2, builders.NOW + timedelta(seconds=11))
        assert waiting.state is RecreationState.WAITING
    last = following(waiting, 50)
    assert (last.count, last.due_at, last.state) == (2, builders.NOW + timedelta(seconds=50), RecreationState.RECREATED)


def test_group_without_restarts_left_is_exhausted() -> None:
    """Recreations are counted regardless of their age. Without a limit, they are not counted (N-RB-1)."""
    settings = RestartSettings(max_restarts=2)

    spent = following(replace(FIRST, count=2), 30, settings, used=2)
    assert (spent.count, spent.state, spent.used_restarts) == (3, RecreationState.EXHAUSTED, None)
    assert following(replace(FIRST, count=2), 700, settings, used=2).state is RecreationState.EXHAUSTED
    assert following(None, 0, RestartSettings(max_restarts=0)).state is RecreationState.EXHAUSTED
    last = following(None, 0, settings, used=1)
    assert (last.state, last.used_restarts) == (RecreationState.RECREATED, 2)
    assert recreationrecord.read(recreation.build(LWS, LEADER, last)) == last
    assert following(FIRST, 30, settings, used=1).used_restarts is None
    assert following(None, 0, used=7).used_restarts is None


def test_new_resume_value_restarts_the_count() -> None:
    again = following(replace(FIRST, count=5), 30, RestartSettings(resumed="a"))

    assert (again.count, again.resumed, again.state) == (1, "a", RecreationState.RECREATED)
    assert (
        following(replace(FIRST, count=5), 30, RestartSettings(resumed="a", max_restarts=3), used=3).used_restarts == 1
    )
    assert following(again, 31, RestartSettings(resumed="a")).count == 2


def test_count_starts_again_after_ten_minutes() -> None:
    assert following(FIRST, 599).count == 2
    assert following(FIRST, 600).count == 1


def test_new_revision_restarts_the_count() -> None:
    assert following(replace(FIRST, revision="old", count=5), 1).count == 1


@given(st.lists(st.floats(0, 599), min_size=1, max_size=30))
def test_delays_double_up_to_five_minutes_and_never_shrink(gaps: list[float]) -> None:
    """A group is recreated at most once per delay. The maximum delay is 5 minutes."""
    previous, waits = FIRST, []
    for gap in gaps:
        now = previous.due_at + timedelta(seconds=gap)
        current = recreation.next_recreation(previous, LEADER, FAILURE, DEFAULTS, now)
        waits.append((current.due_at - now).total_seconds())
        previous = replace(current, state=RecreationState.RECREATED)
    assert waits == [min(10 * 2**n, 300) for n in range(len(waits))]


def test_record_round_trips() -> None:
    second = following(FIRST, 60.5)

    record = recreation.build(LWS, LEADER, second)

    assert recreationrecord.read(record) == second
    assert record == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "web-0-recreations",
            "namespace": "default",
            "labels": {labels.NAME: "web", labels.GROUP_INDEX: "0"},
            "annotations": {
                labels.RECREATIONS: "2",
                labels.RECREATED_LEADER: meta.uid(LEADER),
                labels.TEMPLATE_REVISION_HASH: "k",
                labels.RECREATE_AFTER: "2026-03-01T12:01:10.500000+00:00",
                labels.RECREATION_STATE: "waiting",
                labels.FAILED_POD: "web-0-1",
                labels.FAILED_POD_UID: "uid-of-web-0-1",
                labels.FAILED_POD_RESTARTS: "2",
                labels.FAILURE: "main: exit code 1",
                labels.RESUMED: "",
            },
            "ownerReferences": [meta.controller_reference(LWS)],
        },
        "data": {},
        "revision": 0,
    }


def test_record_keeps_the_longest_failed_run_in_a_row() -> None:
    first = replace(FIRST, failure=replace(FAILURE, longest_run=150))
    again = recreation.next_recreation(first, LEADER, replace(FAILURE, longest_run=3), DEFAULTS, builders.NOW)
    assert again.failure.longest_run == 150
    assert recreationrecord.read(recreation.build(LWS, LEADER, again)) == again
    later = builders.NOW + timedelta(hours=1)
    assert recreation.next_recreation(first, LEADER, FAILURE, DEFAULTS, later).failure.longest_run is None


def test_leader_with_a_random_key_continues_the_previous_record() -> None:
    leader = builders.hash_leader(builders.hash_object(), replaces="web-7d9f8b6c4-bbbbb")

    assert recreationrecord.replaced_record_name(leader) == "web-7d9f8b6c4-bbbbb-recreations"


RECORD = recreation.build(LWS, LEADER, FIRST)


def with_annotations(**changes: Any) -> dict[str, Any]:
    annotations = meta.annotations(RECORD) | {labels.PREFIX + key: value for key, value in changes.items()}
    return RECORD | {"metadata": RECORD["metadata"] | {"annotations": annotations}}


@pytest.mark.parametrize(
    "record",
    [
        None,
        {"metadata": {}},
        with_annotations(recreations="many"),
        with_annotations(**{"recreate-after": "soon"}),
        with_annotations(**{"recreate-after": "2026-03-01T12:01:10"}),
    ],
)
def test_unreadable_record_is_ignored(record: dict[str, Any] | None) -> None:
    assert recreationrecord.read(record) is None


def test_record_of_an_earlier_version_counts_as_completed() -> None:
    """A record without a state contains only the name of the failed pod."""
    names = (labels.RECREATION_STATE, labels.FAILED_POD_UID, labels.FAILED_POD_RESTARTS, labels.FAILURE, labels.RESUMED)
    annotations = {key: text for key, text in meta.annotations(RECORD).items() if key not in names}
    record = RECORD | {"metadata": RECORD["metadata"] | {"annotations": annotations}}

    assert recreationrecord.read(record) == replace(FIRST, failure=Failure(pod="web-0-1"))
    assert recreationrecord.read(with_annotations(**{"recreation-state": "elsewhere"})) == FIRST


def test_recorded_future_time_is_limited() -> None:
    ahead = replace(FIRST, count=3, due_at=builders.NOW + timedelta(days=400), state=RecreationState.WAITING)
    found = following(ahead, 0)
    assert (found.count, found.due_at) == (3, builders.NOW + timedelta(seconds=20))


def disrupted(
    previous: Recreation | None, seconds: float, origin: Origin, settings: RestartSettings = DEFAULTS
) -> Recreation:
    now = builders.NOW + timedelta(seconds=seconds)
    return recreation.next_recreation(previous, LEADER, replace(FAILURE, origin=origin), settings, now)


@pytest.mark.parametrize("origin", [Origin.DISRUPTION, Origin.DELETION])
def test_disruptions_neither_raise_nor_reset_the_count(origin: Origin) -> None:
    after = disrupted(replace(FIRST, count=3), 60, origin)

    assert (after.count, after.due_at, after.state) == (3, FIRST.due_at, RecreationState.RECREATED)
    assert following(after, 61).count == 4
    assert following(after, 700).count == 1
    assert disrupted(None, 0, origin).count == 0
    waiting = following(FIRST, 1)
    replaced = disrupted(waiting, 2, origin)
    assert (waiting.count, replaced.count) == (2, 1)
    assert following(replaced, 3).count == 2


def test_disruptions_use_restarts_where_they_are_limited() -> None:
    """As in the Go controller, each recreation because of a worker is counted (N-RB-2)."""
    settings = RestartSettings(max_restarts=1)
    assert disrupted(None, 0, Origin.DISRUPTION, settings).used_restarts == 1
    now, spent = builders.NOW, replace(FAILURE, origin=Origin.DISRUPTION)
    exhausted = recreation.next_recreation(None, LEADER, spent, settings, now, used=1)
    assert exhausted.state is RecreationState.EXHAUSTED


@given(st.lists(st.integers(0, 200), min_size=1, max_size=30), st.sampled_from([True, False]))
def test_differs_from_upstream_sixth_deletion_waits(pauses: list[int], backs_off: bool) -> None:
    """If pods are deleted repeatedly, their group is recreated without a delay at most five times in two minutes.

    The Go controller has no limit (ADR 3).
    """
    settings, times, now, previous = RestartSettings(has_backoff=backs_off), [], 0.0, None
    for number, pause in enumerate(pauses):
        now += pause
        if number % 3 == 1:
            previous = disrupted(previous, now, Origin.DISRUPTION, settings)
        previous = disrupted(previous, now, Origin.DELETION, settings)
        wait = (previous.due_at - builders.NOW).total_seconds() - now
        assert previous.state is (RecreationState.WAITING if wait > 0 else RecreationState.RECREATED)
        assert wait <= recreation.max_delay(previous, settings).total_seconds()
        now += max(wait, 0)
        times.append(now)
        previous = recreation.start_recreation(previous, settings, 0)
        assert recreationrecord.read(recreation.build(LWS, LEADER, previous)) == previous
    fastest = min((later - first for first, later in zip(times, times[5:], strict=False)), default=200.0)
    assert fastest >= (120 if backs_off else 0)
