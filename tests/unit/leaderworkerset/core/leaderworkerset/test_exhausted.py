"""The condition that names groups which are left as they are."""

from dataclasses import replace
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Delete, PutStatus
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core.leaderworkerset import exhausted, groupfacts
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.reconcile import reconcile
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.recreation import Recreation, RecreationState
from leaderworkerset.core.restarts.failure import Failure

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS)
GROUP = groupfacts.describe(LEADER, None)
AVAILABLE = leaderworkerset.Condition(type="Available", status="True", reason="AllGroupsReady")


def record(state: RecreationState = RecreationState.EXHAUSTED, leader: JSONObject = LEADER) -> JSONObject:
    made = Recreation(
        leader=meta.uid(leader), revision="k", count=4, due=builders.NOW, failure=Failure(pod="web-0"), state=state
    )
    return recreation.build(LWS, leader, made)


def test_a_group_whose_leader_is_the_one_of_the_record_is_named() -> None:
    assert exhausted.is_exhausted(record())
    assert exhausted.groups([record()], {"web-0": GROUP}) == [0]


@pytest.mark.parametrize(
    ("found", "leaders"),
    [
        (record(RecreationState.WAITING), {"web-0": GROUP}),
        (record(), {}),
        (record(), {"web-0": replace(GROUP, is_deleting=True)}),
        (record(leader=builders.leader_pod(LWS, uid="earlier")), {"web-0": GROUP}),
    ],
    ids=["waits", "no leader", "leader goes", "another leader"],
)
def test_other_groups_are_not(found: JSONObject, leaders: dict[str, Any]) -> None:
    assert exhausted.groups([found], leaders) == []


def test_the_condition_is_there_while_there_are_such_groups() -> None:
    first = exhausted.with_condition((AVAILABLE,), [0], 1, builders.NOW)
    later = exhausted.with_condition(first, [0, 3], 2, builders.NOW.replace(year=2027))

    assert [(one.type, one.status, one.reason) for one in first[1:]] == [
        ("RestartsExhausted", "True", "MaxGroupRestartsExceeded")
    ]
    assert later[1].last_transition_time == first[1].last_transition_time
    assert later[1].message.startswith("groups 0, 3 failed")
    assert exhausted.with_condition(later, [0, 3], 2, builders.NOW) == later
    assert exhausted.with_condition(later, [], 2, builders.NOW) == (AVAILABLE,)
    assert exhausted.with_condition((AVAILABLE,), [], 2, builders.NOW) == (AVAILABLE,)


def test_records_of_groups_that_were_scaled_away_are_abandoned() -> None:
    last = record(leader=builders.leader_pod(LWS, 1))
    unreadable = last | {"metadata": last["metadata"] | {"labels": {labels.GROUP_INDEX: "one"}}}

    assert exhausted.abandoned([record(), last, unreadable], {}, 1) == [last]
    assert exhausted.abandoned([last], {}, 2) == []
    assert exhausted.abandoned([last], {"web-1": GROUP}, 1) == []


def test_records_of_groups_that_were_scaled_away_are_deleted_at_rest() -> None:
    lws = builders.leaderworkerset_object(replicas=0)
    statefulset = {
        "kind": "StatefulSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": "web"},
        "spec": {},
        "status": {},
    }
    observed = ObservedLeaderWorkerSet(leaderworkerset=lws, leader_statefulset=statefulset, records=[record()])

    deleted = [one.key.name for one in reconcile(observed, builders.NOW).actions if isinstance(one, Delete)]

    assert deleted == ["web-0-recreations"]


def test_the_status_says_it() -> None:
    statefulset = {
        "kind": "StatefulSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": "web"},
        "spec": {},
        "status": {},
    }
    observed = ObservedLeaderWorkerSet(
        leaderworkerset=LWS,
        leader_statefulset=statefulset,
        groups=[GROUP],
        records=[record()],
        has_shared_service=True,
    )

    (written,) = [one for one in reconcile(observed, builders.NOW).actions if isinstance(one, PutStatus)]

    types = [one["type"] for one in written.object["status"]["conditions"]]
    assert "RestartsExhausted" in types
