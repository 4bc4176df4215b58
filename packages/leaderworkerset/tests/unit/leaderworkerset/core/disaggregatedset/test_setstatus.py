"""Tests the conditions of a DisaggregatedSet (R-DS-94)."""

import pytest
from msgspec import structs
from tests.builders import NOW

from kuberuntime.objects import timestamps
from leaderworkerset.api.leaderworkerset import Condition
from leaderworkerset.core.disaggregatedset import setstatus
from leaderworkerset.core.disaggregatedset.setstatus import AVAILABLE, PROGRESSING, ConditionPair, conditions

THEN, SINCE = "2026-01-01T00:00:00Z", timestamps.render(NOW)


def condition(
    outcome: ConditionPair, status: str, *, since: str = SINCE, kind: str = "", generation: int = 2
) -> Condition:
    return Condition(
        type=kind or outcome.type,
        status=status,
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=since,
        observed_generation=generation,
    )


@pytest.mark.parametrize(
    ("before", "outcome", "after"),
    [
        ((), PROGRESSING, (condition(PROGRESSING, "True"),)),
        (
            (condition(PROGRESSING, "True", since=THEN, generation=1),),
            PROGRESSING,
            (condition(PROGRESSING, "True", since=THEN),),
        ),
        (
            (condition(PROGRESSING, "True", since=THEN),),
            AVAILABLE,
            (condition(AVAILABLE, "False", kind="Progressing"), condition(AVAILABLE, "True")),
        ),
        (
            (
                condition(PROGRESSING, "True", since=THEN),
                condition(PROGRESSING, "False", since=THEN, kind="Available", generation=1),
            ),
            PROGRESSING,
            (
                condition(PROGRESSING, "True", since=THEN),
                condition(PROGRESSING, "False", since=THEN, kind="Available"),
            ),
        ),
        (
            (condition(AVAILABLE, "False", since=THEN),),
            AVAILABLE,
            (condition(AVAILABLE, "True"),),
        ),
    ],
    ids=["the first", "the same", "the other one", "the opposite keeps its time", "true again"],
)
def test_one_condition_of_each_pair_is_true(
    before: tuple[Condition, ...], outcome: ConditionPair, after: tuple[Condition, ...]
) -> None:
    assert conditions(before, outcome, 2, NOW) == after


def test_conditions_of_others_are_kept() -> None:
    foreign = structs.replace(condition(AVAILABLE, "True", since=THEN), type="Audited", reason="Other")
    assert conditions((foreign,), AVAILABLE, 2, NOW) == (foreign, condition(AVAILABLE, "True"))


def test_every_declared_condition_is_in_the_table() -> None:
    declared = {pair for pair in vars(setstatus).values() if isinstance(pair, ConditionPair)}
    assert declared == {*setstatus.CONDITIONS}
