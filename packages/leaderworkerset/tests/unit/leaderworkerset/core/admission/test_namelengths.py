"""Tests names that leave too little space for pod names and labels (docs/adr/0029-stored-values.md)."""

import pytest
from tests import builders

from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, decode
from leaderworkerset.core.admission import namelengths
from leaderworkerset.core.admission.leaderworkerset import stored_errors, validate_leaderworkerset


def named(length: int, *, replicas: int = 2, size: int = 2, surge: int = 0) -> LeaderWorkerSet:
    obj = builders.leaderworkerset_object(
        metadata={"name": "a" * length},
        spec={"replicas": replicas},
        template={"size": size},
        rollout={"maxSurge": surge},
    )
    return decode(obj)


@pytest.mark.parametrize(
    ("longest", "replicas", "size"),
    [(52, 1, 2), (52, 10, 2), (51, 11, 2), (50, 101, 2), (52, 0, 2), (54, 1, 1), (54, 1000, 1), (54, 1_000_000, 1)],
)
def test_differs_from_upstream_names_without_pods_are_rejected(longest: int, replicas: int, size: int) -> None:
    """A name is rejected if it leaves no space for a revision hash of 8 characters.

    The Go webhook accepts names of 63 characters, but the pods are never created (R-VAL-28).
    """
    assert validate_leaderworkerset(named(longest, replicas=replicas, size=size)) == []
    (error,) = validate_leaderworkerset(named(longest + 1, replicas=replicas, size=size))
    assert (error.path, len(str(error.value))) == ("metadata.name", longest + 1)
    assert f"must be no more than {longest} characters" in error.detail


def test_stored_name_blocks_no_update_with_more_groups() -> None:
    """An update by an autoscaler or a DisaggregatedSet adds groups. Groups with valid names are still created."""
    stored = named(60)
    assert validate_leaderworkerset(named(60, replicas=200), stored) == []
    assert [error.path for error in stored_errors(stored)] == ["metadata.name"]


@pytest.mark.parametrize(
    ("length", "replicas", "surge", "words"),
    [
        (51, 2, 0, "Use at most 50 characters"),
        (50, 10, 1, "Use at most 49 characters"),
        (50, 2, 0, "only 10 groups"),
        (49, 11, 0, "only 100 groups"),
        (49, 10, 0, ""),
        (45, 100_001, 0, ""),
    ],
)
def test_names_that_fit_some_hashes_cause_a_warning(length: int, replicas: int, surge: int, words: str) -> None:
    warnings = list(namelengths.warnings(named(length, replicas=replicas, surge=surge)))
    assert bool(warnings) == bool(words)
    assert all(words in text and text.startswith("metadata.name: ") for text in warnings)


def test_names_of_single_pods_cause_a_warning() -> None:
    assert list(namelengths.warnings(named(52, size=1))) == []
    (warning,) = namelengths.warnings(named(53, size=1))
    assert "Use at most 52 characters" in warning
