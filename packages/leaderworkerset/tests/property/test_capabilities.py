"""Tests that the order of two capabilities in the table does not change any plan.

Groups and LeaderWorkerSets have the settings of both, and whatever both react to. So no pair has to be rejected at admission.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests import builders, decisions
from tests.unit.leaderworkerset.core.leaderworkerset import test_reconcile as cases
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile_rollouts import rolling

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Plan
from leaderworkerset.api import labels
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from leaderworkerset.api.progressannotations import Hang, SilentRank, render_hang
from leaderworkerset.capabilities import deciding, names
from leaderworkerset.capabilities.enabled import ENABLED, GROUPS, SETS, Capability
from leaderworkerset.core.extensions import UPSTREAM, combine
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.pod.reconcile import reconcile
from leaderworkerset.core.policies.policy import LiveGroup

VALUES: Final = {
    labels.RESTART_BACKOFF: "on",
    labels.RESTART_FIRST_DELAY: "2s",
    labels.RESTART_LONGEST_DELAY: "4s",
    labels.RESTART_RESET_AFTER: "1h",
    labels.MAX_GROUP_RESTARTS: "1",
    labels.RESUME_GROUP_RESTARTS: "again",
    labels.RELEASE_LOST_PODS_AFTER: "30s",
    labels.FOLLOW_PROGRESS: "true",
    labels.PROGRESS_TIMEOUT: "60s",
    labels.ON_HANG: "recreate",
    labels.RUN_TO_COMPLETION: "true",
    labels.COMPLETION_DEADLINE: "1s",
    labels.TTL_AFTER_FINISHED: "1s",
    labels.POD_TERMINATION_POLICY: "Parallel",
    labels.IN_PLACE: "IfPossible",
    labels.IN_PLACE_RESTARTS: "60s",
    labels.STAY_ON_NODES: "Preferred",
    labels.DISRUPTION_BUDGET: "1",
    labels.DO_NOT_DISRUPT: "starting",
    labels.MOVE_OFF_CLOSED_NODES: "on",
    labels.REVISION_HISTORY_LIMIT: "3",
}
"""A value of each effective setting."""

FIELD_VALUES: Final = {"podTerminationPolicy": ("Parallel", "Default")}
"""The values of each field."""

PAIRS: Final = tuple(combinations(ENABLED, 2))

SINCE: Final = datetime(2026, 3, 1, tzinfo=UTC)

HANG: Final = render_hang(Hang(since=SINCE, ranks=(SilentRank(pod="p", uid="u", rank=1, since=SINCE, waits=""),)))

MARKS: Final = {
    labels.GROUP_ENDED: "Complete",
    labels.IN_PLACE_REVISION: "another",
    labels.IN_PLACE_STATEFULSET_REVISION: "web-2",
    labels.IN_PLACE_REFUSED: "another",
    labels.IN_PLACE_BEFORE: "main=1=runc://a=app:1",
    labels.IN_PLACE_RESOURCES: "main.requests.cpu=2",
    labels.RESTARTED_IN_PLACE: "1=2026-03-01T00:00:00Z",
    labels.HANG: HANG,
}
"""A value of each pod mark."""

RUNNING: Final[JSONObject] = {"running": {}}


def with_settings(obj: JSONObject, chosen: Mapping[str, str]) -> JSONObject:
    return obj | {"metadata": obj["metadata"] | {"annotations": meta.annotations(obj) | dict(chosen)}}


@st.composite
def annotations(draw: st.DrawFn, capabilities: Sequence[Capability]) -> dict[str, str]:
    """Return some settings of these capabilities."""
    known = [setting for one in capabilities for setting in one.settings]
    names_ = draw(st.sets(st.sampled_from(known), min_size=1)) if known else ()
    return {setting: VALUES[setting] for setting in names_}


@st.composite
def objects(draw: st.DrawFn, capabilities: Sequence[Capability]) -> JSONObject:
    """Return a LeaderWorkerSet with settings and fields of these capabilities."""
    obj = with_settings(builders.leaderworkerset_object(), draw(annotations(capabilities)))
    known = [field for one in capabilities for field in one.fields]
    names_ = draw(st.sets(st.sampled_from(known))) if known else ()
    return obj | {"spec": meta.spec(obj) | {field: draw(st.sampled_from(FIELD_VALUES[field])) for field in names_}}


@st.composite
def members(draw: st.DrawFn, made: JSONObject) -> JSONObject:
    """Return a pod that is running, restarted, terminated, being deleted, marked, or several of these."""
    ended = st.sampled_from([0, 1, 137])
    reason = draw(st.sampled_from(["Completed", "Error", "RestartingAllContainers"]))
    status: JSONObject = {"name": "main", "containerID": "runc://a", "restartCount": draw(st.integers(0, 2))}
    status |= {"state": RUNNING, "lastState": {"terminated": {"exitCode": draw(ended), "reason": reason}}}
    own = {name: MARKS[name] for name in draw(st.sets(st.sampled_from(sorted(MARKS)), max_size=2))}
    metadata = made["metadata"] | {"annotations": meta.annotations(made) | own}
    if draw(st.booleans()) and draw(st.booleans()):
        metadata |= {"deletionTimestamp": "2026-03-01T11:00:00Z", "deletionGracePeriodSeconds": 30}
    return made | {
        "metadata": metadata,
        "spec": meta.spec(made) | draw(st.sampled_from([{}, {"nodeName": "n1"}])),
        "status": meta.status(made) | {"containerStatuses": [status]},
    }


@st.composite
def groups(draw: st.DrawFn, capabilities: Sequence[Capability]) -> LiveGroup:
    """Return a group of a LeaderWorkerSet with settings of these capabilities."""
    obj = draw(objects(capabilities))
    made = builders.leader_pod(obj, ready=draw(st.booleans()))
    left = draw(st.sampled_from([{}, {labels.POD_TERMINATION_POLICY: "Parallel"}]))
    leader, worker = draw(members(made)), draw(members(builders.worker_pod(made)))
    return builders.live_group(
        leader=leader,
        obj=draw(st.sampled_from([obj, obj, obj, {}])),
        pods=(leader, worker),
        statefulsets=draw(st.sampled_from([(), (with_settings(builders.worker_statefulset(made), left),)])),
        facts=draw(st.sampled_from([{}, {names.LOST_NODES: timedelta(seconds=1)}])),
        revisions=(builders.revision(obj),),
        nodes=draw(st.sampled_from([{}, {"n1": None}])),
    )


@st.composite
def sets(draw: st.DrawFn, capabilities: Sequence[Capability]) -> ObservedLeaderWorkerSet:
    """Return a LeaderWorkerSet with settings of these capabilities.

    It is stable, in a rollout, or has groups that must move.
    """
    found = draw(st.sampled_from([cases.at_rest(), rolling(cases.ready_groups(cases.LWS, 4, key="older"))]))
    obj = found.leaderworkerset
    assert obj is not None
    leaving = {f"{meta.name(obj)}-{index}": {"n1"} for index in draw(st.sets(st.integers(0, 3)))}
    changed = with_settings(obj, draw(annotations(capabilities)))
    conditions = [{"type": MOVE_IN_PROGRESS.type, "status": draw(st.sampled_from(["True", "False"]))}]
    status = meta.status(changed) | {"conditions": draw(st.sampled_from([[], conditions]))}
    updating = draw(st.sets(st.sampled_from(sorted(found.groups)), max_size=2))
    by_leader = {
        name: replace(group, target_revision="another") if name in updating else group
        for name, group in found.groups.items()
    }
    return cases.replace(
        found,
        leaderworkerset=changed | {"status": status},
        groups=by_leader,
        group_summary=draw(st.sampled_from([None, index_groups(by_leader.values(), meta.name(obj))])),
        facts=draw(st.sampled_from([{}, {names.MOVES: leaving}])),
    )


def comparable(plan: Plan) -> Any:
    """Return a plan with sorted writes, so that their order is ignored in comparisons."""
    return sorted(map(repr, plan.actions)), plan.requeue_after, plan.error, plan.on_failure


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].name} and {pair[1].name}")
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_order_of_two_capabilities_does_not_matter(pair: tuple[Capability, Capability], data: st.DataObject) -> None:
    group, observed = data.draw(groups(pair)), data.draw(sets(pair))
    first, second = (combine(ordered, SETS, GROUPS) for ordered in (pair, pair[::-1]))

    plans = [comparable(reconcile(group, extensions=one)) for one in (first, second)]
    decided = [decisions.decide(observed, builders.NOW, extensions=one) for one in (first, second)]

    assert plans[0] == plans[1]
    assert comparable(decided[0].plan) == comparable(decided[1].plan)


def test_capabilities_change_no_plan_without_a_sign() -> None:
    """The possible signs are settings, marks, conditions, and observed state."""
    obj = builders.leaderworkerset_object()
    leader = builders.leader_pod(obj)
    group = builders.live_group(leader=leader, obj=obj, pods=(leader,), revisions=(builders.revision(obj),))

    assert deciding.reconcile_group(group) == reconcile(group, extensions=UPSTREAM)
    assert deciding.required_nodes(group) == set()
    for observed in (cases.at_rest(), rolling(cases.ready_groups(cases.LWS, 4, key="older"))):
        assert decisions.decide(observed, builders.NOW) == decisions.decide(observed, builders.NOW, extensions=UPSTREAM)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_skipped_hooks_would_not_change_the_plan(data: st.DataObject) -> None:
    """`always` calls the hooks for each LeaderWorkerSet, because it counts a common annotation as a setting."""
    observed = data.draw(sets(data.draw(st.lists(st.sampled_from(ENABLED), max_size=1))))
    assert observed.leaderworkerset is not None
    observed = cases.replace(observed, leaderworkerset=with_settings(observed.leaderworkerset, {"note": "n"}))
    always = combine(ENABLED, replace(SETS, settings=SETS.settings | {"note"}), GROUPS)

    plan = decisions.decide(observed, builders.NOW).plan

    assert plan == decisions.decide(observed, builders.NOW, extensions=always).plan


def test_every_mark_of_a_capability_has_a_value() -> None:
    assert {mark for one in ENABLED for mark in one.pod_marks} == MARKS.keys()


def test_two_faults_are_recorded_in_one_order() -> None:
    pair = [one for one in ENABLED if one.fault_finders]
    chosen = (labels.PROGRESS_TIMEOUT, labels.ON_HANG, labels.IN_PLACE_RESTARTS)
    obj = with_settings(builders.leaderworkerset_object(), {name: VALUES[name] for name in chosen})
    leader = builders.leader_pod(obj, ready=False)
    marks = {labels.HANG: HANG, labels.RESTARTED_IN_PLACE: "1=2026-03-01T00:00:00Z"}
    leader = with_settings(leader, meta.annotations(leader) | marks)
    group = builders.live_group(leader=leader, obj=obj, pods=(leader,))

    recorded = next(one for one in ENABLED if one.name == names.BACKOFF)

    orders = ((recorded, *pair), (recorded, *pair[::-1]))
    plans = [reconcile(group, extensions=combine(ordered, SETS, GROUPS)) for ordered in orders]

    assert len(pair) == 2
    assert all(find(group).failure for one in pair for find in one.fault_finders)
    assert plans[0] == plans[1]
    assert "no progress for 60 s" in str(plans[0].actions)


def test_every_setting_of_a_capability_has_a_value() -> None:
    assert {setting for one in ENABLED for setting in one.settings} == VALUES.keys()
    assert {field for one in ENABLED for field in one.fields} == FIELD_VALUES.keys()
