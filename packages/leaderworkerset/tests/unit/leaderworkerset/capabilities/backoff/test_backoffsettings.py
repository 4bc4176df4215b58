"""Tests valid annotations for recreations, and their effect."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders

from leaderworkerset.api import labels
from leaderworkerset.capabilities import deciding
from leaderworkerset.capabilities.backoff import backoffsettings as settings
from leaderworkerset.capabilities.backoff.backoffsettings import DEFAULTS, apply_annotations
from leaderworkerset.core.policies.recreation import RestartSettings

TEXTS = {
    labels.RESTART_BACKOFF: ("on", "off"),
    labels.RESTART_FIRST_DELAY: ("1s", "1h"),
    labels.RESTART_LONGEST_DELAY: ("1s", "24h"),
    labels.RESTART_RESET_AFTER: ("1s", "168h"),
    labels.MAX_GROUP_RESTARTS: ("1", "1000", "unlimited"),
    labels.RESUME_GROUP_RESTARTS: ("", "2026-03-01", "x" * 63),
}

NONSENSE = {
    labels.RESTART_BACKOFF: ("", "true", "Off"),
    labels.RESTART_FIRST_DELAY: ("", "10", "0s", "-1s", "0.5s", "1h1s", "soon"),
    labels.RESTART_LONGEST_DELAY: ("", "0s", "25h"),
    labels.RESTART_RESET_AFTER: ("", "0s", "169h"),
    labels.MAX_GROUP_RESTARTS: ("", "0", "-1", "1001", "٣", "9" * 5000, "1.5"),
    labels.RESUME_GROUP_RESTARTS: ("x" * 64,),
}


def pairs(texts: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(key, text) for key, found in texts.items() for text in found]


def short(value: Any) -> str:
    return str(value).removeprefix(labels.PREFIX)[:40]


@pytest.mark.parametrize(("key", "text"), pairs(TEXTS), ids=short)
def test_valid_settings_are_accepted(key: str, text: str) -> None:
    assert list(settings.errors(builders.annotated({key: text}))) == []


@pytest.mark.parametrize(("key", "text"), pairs(NONSENSE), ids=short)
def test_invalid_settings_are_rejected_and_ignored(key: str, text: str) -> None:
    (error,) = settings.errors(builders.annotated({key: text}))

    assert error.path == f"metadata.annotations.{key}"
    assert apply_annotations(DEFAULTS, {key: text}) == DEFAULTS


def test_differs_from_upstream_stored_settings_block_no_update() -> None:
    """Invalid restart annotations that are already stored do not block updates (R-VAL, ADR 29)."""
    stored = builders.annotated({labels.RESTART_FIRST_DELAY: "soon"})
    edited = builders.annotated({labels.RESTART_FIRST_DELAY: "soon", "example.com/team": "a"})

    assert deciding.validate_leaderworkerset(stored) != []
    assert deciding.validate_leaderworkerset(edited, stored) == []


def test_every_annotation_has_an_example() -> None:
    assert set(settings.ANNOTATIONS) == TEXTS.keys() == NONSENSE.keys()


def test_annotations_override_the_manager_settings() -> None:
    manager = RestartSettings(max_restarts=7)
    found = {
        labels.RESTART_BACKOFF: "off",
        labels.RESTART_FIRST_DELAY: "2s",
        labels.RESTART_LONGEST_DELAY: "1m30s",
        labels.RESTART_RESET_AFTER: "1h",
        labels.MAX_GROUP_RESTARTS: "unlimited",
        labels.RESUME_GROUP_RESTARTS: "a",
        "example.com/other": "b",
    }

    assert apply_annotations(manager, found) == RestartSettings(
        has_backoff=False,
        first_delay=timedelta(seconds=2),
        longest_delay=timedelta(seconds=90),
        reset_after=timedelta(hours=1),
        resumed="a",
    )
    assert apply_annotations(manager, {labels.MAX_GROUP_RESTARTS: "3"}).max_restarts == 3
    assert apply_annotations(manager, {"example.com/other": "b"}) is manager


@pytest.mark.parametrize(("first", "longest", "errors"), [("10s", "10s", 0), ("10s", "5s", 1), ("1s", "2s", 0)])
def test_first_delay_must_not_exceed_the_longest(first: str, longest: str, errors: int) -> None:
    both = {labels.RESTART_FIRST_DELAY: first, labels.RESTART_LONGEST_DELAY: longest}

    assert len(list(settings.errors(builders.annotated(both)))) == errors


@given(first=st.integers(1, 3600), longest=st.integers(1, 86_400), count=st.integers(0, 10**6))
def test_delays_grow_up_to_the_longest(first: int, longest: int, count: int) -> None:
    """If the maximum delay is shorter than the first delay in a setting or annotation, the first one is used."""
    one = RestartSettings(first_delay=timedelta(seconds=first), longest_delay=timedelta(seconds=longest))
    delay, following = one.delay(count).total_seconds(), one.delay(count + 1).total_seconds()

    assert delay == (0 if count <= 1 else min(first * 2 ** min(count - 2, 64), max(first, longest)))
    assert delay <= following


def test_record_is_kept_when_delays_or_limits_need_it() -> None:
    """Without delays and without a limit, no record is needed."""
    assert DEFAULTS.records_recreations
    assert not RestartSettings(has_backoff=False).records_recreations
    assert RestartSettings(has_backoff=False, max_restarts=1).records_recreations
    assert RestartSettings(has_backoff=False).delay(9) == timedelta()


def test_restart_limit_annotation_causes_a_warning() -> None:
    assert [*settings.warnings({})] == []
    (warning,) = settings.warnings({labels.MAX_GROUP_RESTARTS: "3"})
    assert "use spec.leaderWorkerTemplate.maxGroupRestarts" in warning
