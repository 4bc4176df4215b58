"""Two capabilities decide together as one after the other: their order in the table changes no plan.

Groups and LeaderWorkerSets have the settings of both, and whatever both react to. So no pair has to be rejected at admission.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import builders
from tests.unit.leaderworkerset.core.leaderworkerset import test_reconcile as cases
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile_rollouts import rolling

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Plan
from leaderworkerset.api import labels
from leaderworkerset.api.progressnotes import Hang, SilentRank, render_hang
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.enabled import ENABLED
from leaderworkerset.core.extensions import together
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.reconcile import decide
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
"""A value of each setting that has an effect."""

PAIRS: Final = tuple(combinations(ENABLED, 2))

SINCE: Final = datetime(2026, 3, 1, tzinfo=UTC)

HANG: Final = render_hang(Hang(since=SINCE, ranks=(SilentRank(pod="p", uid="u", rank=1, since=SINCE, waits=""),)))

RUNNING: Final[JSONObject] = {"running": {}}


def with_settings(obj: JSONObject, chosen: Mapping[str, str]) -> JSONObject:
    return obj | {"metadata": obj["metadata"] | {"annotations": meta.annotations(obj) | dict(chosen)}}


@st.composite
def annotations(draw: st.DrawFn, pair: tuple[Capability, Capability]) -> dict[str, str]:
    """Return some settings of two capabilities."""
    known = [setting for one in pair for setting in one.settings]
    return {setting: VALUES[setting] for setting in draw(st.sets(st.sampled_from(known), min_size=1))}


@st.composite
def members(draw: st.DrawFn, made: JSONObject) -> JSONObject:
    """Return a pod that runs, was restarted, ended, is being deleted, is marked, or several of these."""
    ended = st.sampled_from([0, 1, 137])
    reason = draw(st.sampled_from(["Completed", "Error", "RestartingAllContainers"]))
    status: JSONObject = {"name": "main", "containerID": "runc://a", "restartCount": draw(st.integers(0, 2))}
    status |= {"state": RUNNING, "lastState": {"terminated": {"exitCode": draw(ended), "reason": reason}}}
    marks = {
        labels.GROUP_ENDED: "Complete",
        labels.IN_PLACE_REVISION: "another",
        labels.IN_PLACE_BEFORE: "main=1=runc://a=app:1",
        labels.RESTARTED_IN_PLACE: "1=2026-03-01T00:00:00Z",
        labels.HANG: HANG,
    }
    own = {name: marks[name] for name in draw(st.sets(st.sampled_from(sorted(marks)), max_size=2))}
    metadata = made["metadata"] | {"annotations": meta.annotations(made) | own}
    if draw(st.booleans()) and draw(st.booleans()):
        metadata |= {"deletionTimestamp": "2026-03-01T11:00:00Z", "deletionGracePeriodSeconds": 30}
    return made | {
        "metadata": metadata,
        "spec": meta.spec(made) | draw(st.sampled_from([{}, {"nodeName": "n1"}])),
        "status": meta.status(made) | {"containerStatuses": [status]},
    }


@st.composite
def groups(draw: st.DrawFn, pair: tuple[Capability, Capability]) -> LiveGroup:
    """Return a group of a LeaderWorkerSet with settings of two capabilities."""
    obj = with_settings(builders.leaderworkerset_object(), draw(annotations(pair)))
    made = builders.leader_pod(obj, ready=draw(st.booleans()))
    leader, worker = draw(members(made)), draw(members(builders.worker_pod(made)))
    return builders.live_group(
        leader=leader,
        obj=draw(st.sampled_from([obj, obj, obj, {}])),
        pods=(leader, worker),
        statefulsets=draw(st.sampled_from([(), (builders.worker_statefulset(made),)])),
        revisions=(builders.revision(obj),),
        nodes=draw(st.sampled_from([{}, {"n1": None}])),
    )


@st.composite
def sets(draw: st.DrawFn, pair: tuple[Capability, Capability]) -> ObservedLeaderWorkerSet:
    """Return a LeaderWorkerSet with settings of two capabilities: at rest, in a rollout, with groups that have to leave."""
    found = draw(st.sampled_from([cases.at_rest(), rolling(cases.ready_groups(cases.LWS, 4, key="older"))]))
    obj = found.leaderworkerset
    assert obj is not None
    leaving = {f"{meta.name(obj)}-{index}": {"n1"} for index in draw(st.sets(st.integers(0, 3)))}
    changed = with_settings(obj, draw(annotations(pair)))
    return cases.replace(found, leaderworkerset=changed, facts={names.MOVES: leaving})


def comparable(plan: Plan) -> Any:
    """Return a plan whose writes at one place have no order."""
    return sorted(map(repr, plan.actions)), plan.requeue_after, plan.error, plan.on_failure


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].name} and {pair[1].name}")
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_order_of_two_capabilities_does_not_matter(pair: tuple[Capability, Capability], data: st.DataObject) -> None:
    group, observed = data.draw(groups(pair)), data.draw(sets(pair))
    first, second = (together({one.name: one for one in ordered}) for ordered in (pair, pair[::-1]))

    plans = [comparable(reconcile(group, extensions=one)) for one in (first, second)]
    decided = [decide(observed, builders.NOW, extensions=one) for one in (first, second)]

    assert plans[0] == plans[1]
    assert comparable(decided[0].plan) == comparable(decided[1].plan)
    assert decided[0].needs == decided[1].needs


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
    plans = [reconcile(group, extensions=together({one.name: one for one in ordered})) for ordered in orders]

    assert len(pair) == 2
    assert all(find(group).failure for one in pair for find in one.fault_finders)
    assert plans[0] == plans[1]
    assert "no progress for 60 s" in str(plans[0].actions)


def test_every_setting_of_a_capability_has_a_value() -> None:
    assert {setting for one in ENABLED for setting in one.settings} == VALUES.keys()
