"""Tests the counts and conditions in the status, and the completion of an update."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from tests import builders

from leaderworkerset.api import leaderworkerset
from leaderworkerset.api.conditions import (
    AVAILABLE,
    CONDITIONS,
    PROGRESSING,
    UPDATE_IN_PROGRESS,
    ConditionOutcome,
)
from leaderworkerset.api.leaderworkerset import Condition, LeaderWorkerSet
from leaderworkerset.core.leaderworkerset import status
from leaderworkerset.core.leaderworkerset.groupindex import Groups, index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers
from leaderworkerset.core.leaderworkerset.status import Counts

THEN, NOW = "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"


def lws(**fields: Any) -> LeaderWorkerSet:
    return leaderworkerset.decode(builders.leaderworkerset_object(**fields))


def group(index: int, letter: str) -> GroupFacts:
    """Return a group. N is ready and new, O is ready and old, n and o are not ready, and w has no workers.

    X and x are exhausted and without workers, new and old.
    """
    revision = "new" if letter in "NnX" else "old"
    ready = letter in "NO"
    workers = None if letter in "wXx" else Workers(is_ready=ready, revision=revision, group_index=str(index))
    is_exhausted = letter in "Xx"
    return GroupFacts(
        f"web-{index}",
        str(index),
        index,
        is_leader_ready=ready,
        revision=revision,
        workers=workers,
        is_exhausted=is_exhausted,
        is_deleting=is_exhausted,
    )


def groups(letters: str) -> list[GroupFacts]:
    return [group(index, letter) for index, letter in enumerate(letters)]


def condition(outcome: ConditionOutcome, state: str, *, generation: int = 1, since: str = THEN) -> Condition:
    return Condition(
        type=outcome.type,
        status=state,
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=since,
        observed_generation=generation,
    )


def as_expected(generation: int = 1) -> Condition:
    """Return the condition of a LeaderWorkerSet that has no exhausted groups."""
    return Condition(
        type="Degraded",
        status="False",
        reason="AsExpected",
        message="No replica has exhausted its restart budget",
        last_transition_time=NOW,
        observed_generation=generation,
    )


@pytest.mark.parametrize(
    ("letters", "fields", "expected"),
    [
        ("NN", {}, Counts(2, 2, 2, 2, 2, 2)),
        ("NOno", {"replicas": 4}, Counts(2, 2, 2, 4, 2, 1)),
        ("NNN", {"replicas": 2}, Counts(3, 3, 2, 2, 2, 2)),
        ("OONN", {"replicas": 3, "rollout": {"partition": 2}}, Counts(4, 2, 3, 1, 1, 1)),
        ("Nw", {}, Counts(1, 1, 1, 1, 1, 1)),
        ("w", {"replicas": 1, "size": 1}, Counts(0, 0, 0, 1, 0, 0)),
        ("NXN", {"replicas": 2}, Counts(2, 3, 1, 2, 2, 1, 1, 1)),
        ("NNx", {"replicas": 2}, Counts(2, 2, 2, 2, 2, 2, 1, 0)),
        ("", {}, Counts()),
    ],
)
def test_groups_are_counted(letters: str, fields: dict[str, Any], expected: Counts) -> None:
    """Surge groups are counted as ready, but groups without workers are not (R-STAT-5 to R-STAT-7)."""
    assert status.count(lws(**fields), index_groups(groups(letters), "web"), "new") == expected


def test_index_that_is_not_a_number_is_an_error() -> None:
    """A non-numeric index causes an error (R-STAT-5)."""
    odd = GroupFacts("web-x", "x", None, is_leader_ready=True, revision="new", workers=None)

    with pytest.raises(status.UnknownIndexError, match=r"pod web-x.*group-index is 'x', not a number"):
        status.count(lws(), index_groups([odd], "web"), "new")


@pytest.mark.parametrize(
    ("letters", "fields", "expected"),
    [
        ("", {}, (PROGRESSING,)),
        ("Nn", {}, (PROGRESSING,)),
        ("NN", {}, (AVAILABLE,)),
        ("NO", {}, (UPDATE_IN_PROGRESS, PROGRESSING)),
        ("", {"replicas": 0}, (AVAILABLE,)),
        ("OONN", {"replicas": 4, "rollout": {"partition": 2}}, (AVAILABLE,)),
        ("OoNN", {"replicas": 4, "rollout": {"partition": 2}}, (PROGRESSING,)),
        ("NX", {}, ()),
        ("nX", {}, (PROGRESSING,)),
        ("Nx", {}, (UPDATE_IN_PROGRESS, PROGRESSING)),
    ],
)
def test_conditions_follow_from_the_counts(
    letters: str, fields: dict[str, Any], expected: tuple[ConditionOutcome, ...]
) -> None:
    """Conditions are derived from the counts (R-STAT-8, R-STAT-16, R-STAT-17, N-ST-13)."""
    found = lws(**fields)

    assert (
        status.current_conditions(found, status.count(found, index_groups(groups(letters), "web"), "new")) == expected
    )


@pytest.mark.parametrize(
    ("letters", "fields", "done"),
    [
        ("NN", {}, True),
        ("Nn", {}, False),
        ("NNO", {}, True),
        ("NN", {"rollout": {"partition": 1}}, False),
        ("", {"replicas": 0}, True),
    ],
)
def test_update_is_done_when_all_wanted_groups_are_updated(letters: str, fields: dict[str, Any], *, done: bool) -> None:
    """An update is complete when all required groups are updated (R-STAT-9)."""
    found = lws(**fields)

    assert status.is_update_done(found, status.count(found, index_groups(groups(letters), "web"), "new")) is done


def test_first_condition_is_appended() -> None:
    """The first condition is appended to the list (R-STAT-11, R-STAT-12c)."""
    assert status.set_true((), PROGRESSING, 1, builders.NOW) == (condition(PROGRESSING, "True", since=NOW),)


def test_current_condition_is_unchanged() -> None:
    """The current condition does not change (R-STAT-12a)."""
    before = (condition(PROGRESSING, "True"),)

    assert status.set_true(before, PROGRESSING, 1, builders.NOW) == before


def test_condition_of_a_new_generation_is_renewed() -> None:
    """A condition is updated for a new generation (R-STAT-12a, Q-3)."""
    after = status.set_true((condition(PROGRESSING, "True"),), PROGRESSING, 2, builders.NOW)

    assert after == (condition(PROGRESSING, "True", generation=2, since=NOW),)


def test_excluded_conditions_become_false_and_keep_their_text() -> None:
    """Excluded conditions become False and retain their message (R-STAT-12b, Q-4)."""
    before = (condition(PROGRESSING, "True"), condition(UPDATE_IN_PROGRESS, "True"))

    assert status.set_true(before, AVAILABLE, 1, builders.NOW) == (
        condition(PROGRESSING, "False", since=NOW),
        condition(UPDATE_IN_PROGRESS, "False", since=NOW),
        condition(AVAILABLE, "True", since=NOW),
    )


def test_progressing_does_not_exclude_an_update() -> None:
    """Only the `Available` condition completes an update (R-STAT-12b, R-STAT-14)."""
    before = (condition(UPDATE_IN_PROGRESS, "True"),)

    assert status.set_true(before, PROGRESSING, 1, builders.NOW) == (
        condition(UPDATE_IN_PROGRESS, "True"),
        condition(PROGRESSING, "True", since=NOW),
    )


def test_differs_from_upstream_all_conditions_are_set_at_once() -> None:
    """All conditions are set in one reconciliation.

    The Go controller v0.10 needs two reconciliations and two events (R-STAT-13, Q-2, N-ST-10, N-AT-16).
    """
    found = lws(
        metadata={"generation": 2},
        status={"conditions": [msgspec.to_builtins(condition(AVAILABLE, "True"))]},
    )

    built = status.build(
        found, {"status": {"replicas": 2}}, status.count(found, index_groups(groups("OO"), "web"), "new"), builders.NOW
    )

    assert built.conditions == (
        condition(AVAILABLE, "False", generation=2, since=NOW),
        condition(UPDATE_IN_PROGRESS, "True", generation=2, since=NOW),
        condition(PROGRESSING, "True", generation=2, since=NOW),
        as_expected(2),
    )


def test_other_conditions_follow_the_generation() -> None:
    """Other conditions are updated with the generation (R-STAT-13, R-STAT-15)."""
    stored = [{"type": "Other", "status": "False", "observedGeneration": 1}]
    found = lws(metadata={"generation": 3}, status={"conditions": stored})

    built = status.build(found, {}, Counts(), builders.NOW)

    assert [one.observed_generation for one in built.conditions] == [3, 3, 3]


FAILED = "ReplicaRestartBudgetExceeded"


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        (
            "NX",
            {
                "Available": ("False", FAILED, "Not all replicas are ready"),
                "Progressing": ("False", FAILED, "Automatic recovery is stopped for one or more replicas"),
                "UpdateInProgress": ("False", FAILED, "No rolling update is in progress"),
            },
        ),
        (
            "nX",
            {
                "Available": ("False", FAILED, "Not all replicas are ready"),
                "Progressing": ("True", "GroupsProgressing", "Replicas are progressing"),
                "UpdateInProgress": ("False", FAILED, "No rolling update is in progress"),
            },
        ),
        (
            "Nx",
            {
                "Available": ("False", FAILED, "Not all replicas are ready"),
                "Progressing": ("True", "GroupsProgressing", "Replicas are progressing"),
                "UpdateInProgress": ("True", "GroupsUpdating", "Rolling Upgrade is in progress"),
            },
        ),
    ],
    ids=["nothing else moves", "another starts", "a rollout runs"],
)
def test_exhausted_groups_set_the_degraded_condition(letters: str, expected: dict[str, tuple[str, str, str]]) -> None:
    """The result does not depend on earlier conditions. A second reconcile does not change it (N-ST-11, N-ST-12)."""
    stored = [msgspec.to_builtins(condition(one, "True")) for one in (AVAILABLE, PROGRESSING, UPDATE_IN_PROGRESS)]
    former = {"type": "RestartsExhausted", "status": "True"}
    found = lws(status={"conditions": [*stored, former, msgspec.to_builtins(as_expected())]})

    assessed = status.assess(found, {}, index_groups(groups(letters), "web"), "new", builders.NOW)

    told = {one.type: (one.status, one.reason, one.message) for one in assessed.status.conditions}
    degraded = ("True", FAILED, "Automatic recovery is stopped for one or more replicas")
    assert told == expected | {"Degraded": degraded}
    assert assessed.reason == "Degraded"
    assert assessed.note.startswith("Automatic recovery is stopped for one or more replicas, with ")
    again = lws(status=leaderworkerset.encode_status(assessed.status))
    later = builders.NOW + timedelta(hours=1)
    assert status.assess(again, {}, index_groups(groups(letters), "web"), "new", later).status == assessed.status


def test_status_at_rest_is_unchanged() -> None:
    """The condition is written together with the next change (N-AT-18, N-ST-11)."""
    of_go = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "hpaPodSelector": "s", "observedGeneration": 1}
    found = lws(status=of_go | {"conditions": [msgspec.to_builtins(condition(AVAILABLE, "True"), str_keys=True)]})

    at_rest = status.assess(found, {"status": {"replicas": 2}}, index_groups(groups("NN"), "web"), "new", builders.NOW)
    changed = status.assess(found, {"status": {"replicas": 2}}, index_groups(groups("Nn"), "web"), "new", builders.NOW)

    assert at_rest.status == found.status
    assert changed.status.conditions[-1] == as_expected()


def test_recovered_groups_clear_the_degraded_condition() -> None:
    """After groups recover, the `Degraded` condition becomes False (N-ST-11)."""
    degraded = status.assess(lws(), {}, index_groups(groups("NX"), "web"), "new", builders.NOW).status
    found = lws(status=leaderworkerset.encode_status(degraded))

    whole = status.assess(found, {}, index_groups(groups("NN"), "web"), "new", builders.NOW)

    assert {one.type: one.status for one in whole.status.conditions} == {
        "Available": "True",
        "Progressing": "False",
        "UpdateInProgress": "False",
        "Degraded": "False",
    }


def test_status_has_counts_selector_and_generation() -> None:
    """Zero values are not written (R-STAT-1, R-STAT-4, R-API-10)."""
    found = lws(status={"hpaPodSelector": "mine"})

    built = status.build(found, {"status": {"replicas": 3}}, Counts(ready=2, updated=1), builders.NOW)

    wire = leaderworkerset.encode_status(built)
    assert {name: value for name, value in wire.items() if name != "conditions"} == {
        "readyReplicas": 2,
        "updatedReplicas": 1,
        "replicas": 3,
        "hpaPodSelector": "mine",
        "observedGeneration": 1,
    }
    empty = leaderworkerset.encode_status(status.build(lws(), {}, Counts(), builders.NOW))
    assert empty.keys() == {"conditions", "hpaPodSelector", "observedGeneration"}
    assert empty["hpaPodSelector"] == (
        "leaderworkerset.sigs.k8s.io/name=web,leaderworkerset.sigs.k8s.io/worker-index=0"
    )


def test_equal_facts_give_an_equal_status() -> None:
    """Equal observations result in an equal status (R-STAT-3)."""
    found = lws()
    first = status.build(found, {}, status.count(found, index_groups(groups("N"), "web"), "new"), builders.NOW)
    again = lws(status=leaderworkerset.encode_status(first))

    later = builders.NOW + timedelta(hours=1)
    assert status.build(again, {}, status.count(again, index_groups(groups("N"), "web"), "new"), later) == first


def test_event_counts_groups() -> None:
    """The event contains the number of groups (R-STAT-10, R-STAT-16)."""
    found = lws(replicas=0)

    note = status.event_note(found, status.build(found, {}, Counts(), builders.NOW), AVAILABLE)

    assert note == "All replicas are ready, with 0 groups ready of total 0 groups"


def test_conditions_have_reasons_and_messages() -> None:
    """Conditions have reasons and messages (R-STAT-11)."""
    assert [(one.type, one.reason, one.message) for one in (AVAILABLE, PROGRESSING, UPDATE_IN_PROGRESS)] == [
        ("Available", "AllGroupsReady", "All replicas are ready"),
        ("Progressing", "GroupsProgressing", "Replicas are progressing"),
        ("UpdateInProgress", "GroupsUpdating", "Rolling Upgrade is in progress"),
    ]


def test_group_with_a_different_leader_name_counts_by_its_label() -> None:
    """A group whose leader has an unexpected name is counted by its label (R-STAT-5)."""
    odd = GroupFacts(
        "other-0",
        "0",
        0,
        is_leader_ready=True,
        revision="new",
        workers=Workers(is_ready=True, revision="new", group_index="0"),
    )
    assert status.count(lws(replicas=1), index_groups([odd], "web"), "new") == status.count(
        lws(replicas=1), index_groups(groups("N"), "web"), "new"
    )
    half = GroupFacts("other-1", "1", 1, is_leader_ready=True, revision="new", workers=None)
    assert status.count(lws(replicas=1), index_groups([odd, half], "web"), "new") == status.count(
        lws(replicas=1), index_groups([odd], "web"), "new"
    )


def test_fold_grows_and_shrinks_with_the_groups() -> None:
    """An index far above the number of leaders is stored separately until there are enough leaders."""
    found, far = Groups("web"), group(5000, "N")
    found.put(far.leader, far)
    assert [*found.summary.irregular] == ["web-5000"]

    for one in groups("N" * 600):
        found.put(one.leader, one)

    assert (found.summary.members.bit_count(), found.summary.irregular) == (601, {})


def test_deleted_group_is_removed_from_the_fold() -> None:
    one, other = groups("NO")
    odd = GroupFacts("other-0", "0", 0, is_leader_ready=True, revision="new", workers=None)
    found = Groups("web")
    for group in (one, other, odd, one):  # the last observation does not change anything
        found.put(group.leader, group)
    found.put("other-0", None)
    assert found.summary == index_groups([one, other], "web")
    found.put(other.leader, None)
    assert found.summary == index_groups([one], "web")


@pytest.mark.parametrize("outcome", CONDITIONS, ids=lambda outcome: outcome.type)
def test_every_condition_can_be_set_and_excludes_others(outcome: ConditionOutcome) -> None:
    others = tuple(condition(one, "True") for one in CONDITIONS if one != outcome)

    after = status.set_true(others, outcome, 1, builders.NOW)

    assert {one.type for one in after if one.status == "True"} == {one.type for one in CONDITIONS} - outcome.excludes
    assert all(outcome.type in other.excludes for other in CONDITIONS if other.type in outcome.excludes)
