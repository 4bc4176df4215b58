"""Tests which failed container explains the other failures, including unknown times."""

from typing import Any

import pytest

from kuberuntime.objects.terminations import ContainerFailure, in_order


def death(pod: str, restarts: int, **end: Any) -> ContainerFailure:
    return ContainerFailure(pod, "main", {"exitCode": 1} | end, is_init=False, restarts=restarts)


@pytest.mark.parametrize("started", [None, "", "x", 3])
def test_run_with_an_unknown_start_counts_as_longest(started: object) -> None:
    """Go encodes an unknown time as null."""
    unknown = death("web-0", 3, startedAt=started, finishedAt="2026-01-01T00:00:09Z")
    short = death("web-1", 3, startedAt="2026-01-01T00:00:00Z", finishedAt="2026-01-01T00:00:09Z")
    assert in_order([unknown, short]) == [short, unknown]


def test_times_with_and_without_a_zone_are_not_compared() -> None:
    assert death("web-0", 3, startedAt="2026-01-01T00:00:00", finishedAt="2026-01-01T00:00:09Z").seconds == float("inf")
