"""When a group that failed may be recreated (docs/adr/0003-recreation-backoff.md)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID
from leaderworkerset.api import labels
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.recreation import Recreation

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS, key="k")
WORKER = builders.worker_pod(LEADER)
FIRST = Recreation(leader=UID("earlier"), revision="k", count=1, due=builders.NOW, failed_pod="web-0-1")


def following(previous: Recreation | None, seconds: float) -> Recreation:
    return recreation.following(previous, LEADER, WORKER, builders.NOW + timedelta(seconds=seconds))


def test_the_first_recreation_is_due_at_once() -> None:
    assert following(None, 0) == Recreation(
        leader=meta.uid(LEADER), revision="k", count=1, due=builders.NOW, failed_pod="web-0-1"
    )


def test_the_second_within_the_window_waits() -> None:
    second = following(FIRST, 60)

    assert (second.count, second.due) == (2, builders.NOW + timedelta(seconds=70))


def test_after_ten_minutes_the_count_starts_anew() -> None:
    assert following(FIRST, 599).count == 2
    assert following(FIRST, 600).count == 1


def test_another_revision_is_another_program() -> None:
    assert following(replace(FIRST, revision="old", count=5), 1).count == 1


@given(st.lists(st.floats(0, 599), min_size=1, max_size=30))
def test_delays_double_up_to_five_minutes_and_never_shrink(gaps: list[float]) -> None:
    """However a group fails again and again: at most one recreation per delay, never more than 5 minutes away."""
    previous, waits = FIRST, []
    for gap in gaps:
        now = previous.due + timedelta(seconds=gap)
        current = recreation.following(previous, LEADER, WORKER, now)
        waits.append((current.due - now).total_seconds())
        previous = current
    assert waits == [min(10 * 2**n, 300) for n in range(len(waits))]


def test_a_record_is_read_as_it_was_built() -> None:
    second = following(FIRST, 60.5)

    record = recreation.build(LWS, LEADER, second)

    assert recreation.read(record) == second
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
                labels.FAILED_POD: "web-0-1",
            },
            "ownerReferences": [meta.controller_reference(LWS)],
        },
        "data": {},
        "revision": 0,
    }


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
def test_a_record_that_cannot_be_read_is_as_good_as_none(record: dict[str, Any] | None) -> None:
    assert recreation.read(record) is None
