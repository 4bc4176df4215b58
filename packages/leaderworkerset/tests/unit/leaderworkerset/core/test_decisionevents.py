"""Tests the type, reason and action of each event (contract 8.3)."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.plan import Event
from leaderworkerset.capabilities.lostnodes import forcedeletion
from leaderworkerset.core import decisionevents

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS)


def test_reference_names_its_object() -> None:
    """The reference contains only existing fields (contract 8.3)."""
    assert decisionevents.reference(LEADER) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "web-0",
        "uid": "uid-of-web-0",
        "resourceVersion": "1",
    }
    assert decisionevents.reference({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}) == {
        "apiVersion": "v1",
        "kind": "Node",
        "name": "n",
    }


@pytest.mark.parametrize(
    ("event", "words", "related"),
    [
        (decisionevents.created(LWS, "n"), ("Normal", "GroupsProgressing", "Create"), None),
        (decisionevents.created(LWS, "n", LEADER), ("Normal", "GroupsProgressing", "Create"), LEADER),
        (decisionevents.creating_revision(LWS, "n", LEADER), ("Normal", "CreatingRevision", "Create"), LEADER),
        (decisionevents.deleting_surge(LWS, "n"), ("Normal", "GroupsProgressing", "Delete"), None),
        (decisionevents.updating(LWS, "n"), ("Normal", "GroupsUpdating", "Update"), None),
        (decisionevents.failed_create(LWS, "n"), ("Warning", "FailedCreate", "Create"), None),
        (decisionevents.failed_create(LWS, "n", LEADER), ("Warning", "FailedCreate", "Create"), LEADER),
        (decisionevents.failed_update(LWS, "n"), ("Warning", "FailedUpdate", "Update"), None),
        (
            decisionevents.condition_changed_event(LWS, "AllGroupsReady", "n"),
            ("Normal", "AllGroupsReady", "Update"),
            None,
        ),
        (decisionevents.recreating_group(LWS, "n", LEADER), ("Normal", "RecreateGroup", "Delete"), LEADER),
        (decisionevents.backing_off(LWS, "n", LEADER), ("Warning", "BackOff", "Delete"), LEADER),
        (
            decisionevents.restarts_exhausted(LWS, "n", LEADER),
            ("Warning", "ReplicaRestartBudgetExceeded", "Delete"),
            LEADER,
        ),
        (forcedeletion.RELEASED(LWS, "n", LEADER), ("Warning", "LostPod", "Delete"), LEADER),
        (forcedeletion.WAITING(LWS, "n", LEADER), ("Warning", "LostPod", "Hold"), LEADER),
    ],
)
def test_every_event_regards_the_leaderworkerset(event: Event, words: tuple[Any, Any, Any], related: Any) -> None:
    """All events regard the LeaderWorkerSet (R-LSTS-7, R-WSTS-2, R-ROLL-3, R-POD-5, R-STAT-10)."""
    regarding = decisionevents.reference(LWS)

    assert event == Event(*words, "n", regarding, None if related is None else decisionevents.reference(related))


@pytest.mark.parametrize(
    ("lws", "regarding", "related"), [(LWS, LWS, LEADER), (None, LEADER, None)], ids=["of a set", "of nobody"]
)
def test_ignored_object_is_reported_for_its_set_or_itself(lws: Any, regarding: Any, related: Any) -> None:
    event = decisionevents.ignored_event(LEADER, lws)
    assert (event.type, event.reason, event.action) == ("Warning", "IgnoredObject", "Read")
    assert event.note == "Ignored Pod web-0, because it is invalid. Correct or delete it"
    assert event.regarding == decisionevents.reference(regarding)
    assert event.related == (decisionevents.reference(related) if related else None)
