"""Tests that changes for which the pod controller does not enqueue a group never alter its plan."""

from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from testkit.examples import examples
from tests import builders
from tests.property.test_capabilities import groups

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Delete, Plan
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.policytypes import RestartPolicy
from leaderworkerset.api.recreationrecord import Recreation, RecreationState
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.deciding import reconcile_group
from leaderworkerset.capabilities.groupprogress import ignores_progress
from leaderworkerset.controllers import startprogress
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.policies.recreation import RestartSettings
from leaderworkerset.core.restarts import failure
from leaderworkerset.kinds.managedkinds import Configured
from leaderworkerset.manager.config.configuration import Configuration
from leaderworkerset.manager.config.configurationfile import opted_in

CONFIGURED: Final[tuple[Configured, ...]] = (
    {},
    opted_in(Configuration()),
    {names.BACKOFF: RestartSettings(max_restarts=2)},
)
"""The settings of managers for which the progress of plain groups is ignored."""

DELETED: Final = {"deletionTimestamp": "2026-03-01T11:00:00Z", "deletionGracePeriodSeconds": 30}


@st.composite
def plain_groups(draw: st.DrawFn) -> LiveGroup:
    """Return a group without capabilities, and with upstream policies that may depend on its progress."""
    group = draw(groups(()))
    if not group.obj:
        return group
    spec = meta.spec(group.obj)
    template = spec["leaderWorkerTemplate"] | {"size": 2, "restartPolicy": draw(st.sampled_from(RestartPolicy)).value}
    own = {"startupPolicy": draw(st.sampled_from(["LeaderCreated", "LeaderReady"])), "leaderWorkerTemplate": template}
    marks = draw(
        st.sampled_from([{}, {}, {labels.EXCLUSIVE_TOPOLOGY: "rack"}, {labels.RECREATE_GROUP_AFTER_START: "true"}])
    )
    metadata = meta.metadata(group.obj) | {"annotations": meta.annotations(group.obj) | marks}
    workers = (builders.worker_statefulset(group.leader),)
    facts, record = draw(st.sampled_from(CONFIGURED)), draw(records(group))
    group = replace(group, facts=facts, record=record, objects=replace(group.objects, statefulsets=workers))
    return replace(group, obj=group.obj | {"metadata": metadata, "spec": spec | own})


@st.composite
def records(draw: st.DrawFn, group: LiveGroup) -> JSONObject | None:
    """Return the record of a recreation of this leader or of its predecessor, or None."""
    if draw(st.booleans()):
        return None
    worker = builders.worker_pod(group.leader)
    known = Recreation(
        leader=draw(st.sampled_from([meta.uid(group.leader), meta.UID("before")])),
        revision=draw(st.sampled_from([groupname.revision_key(group.leader), "older"])),
        count=draw(st.integers(1, 3)),
        due_at=builders.NOW + timedelta(seconds=draw(st.sampled_from([-5, 5]))),
        failure=failure.describe(worker),
        state=draw(st.sampled_from(RecreationState)),
    )
    return recreation.build(group.obj, group.leader, known)


@st.composite
def states(draw: st.DrawFn, pod: JSONObject) -> JSONObject:
    """Return a pod in a different phase of its start, or after a failure."""
    containers = [{"name": "main", "restartCount": draw(st.sampled_from([0, 0, 1])), "state": {"running": {}}}]
    status: dict[str, Any] = {"phase": draw(st.sampled_from(["Pending", "Pending", "Running", "Running", "Failed"]))}
    ready = {"type": "Ready", "status": draw(st.sampled_from(["True", "False"]))}
    status |= {"containerStatuses": containers, "conditions": [ready]}
    deleted = draw(st.sampled_from([{}, {}, {}, {}, {}, DELETED]))
    spec = meta.spec(pod) | draw(st.sampled_from([{}, {"nodeName": "n1"}]))
    kept = {name: value for name, value in pod["metadata"].items() if name not in {*DELETED, "annotations"}}
    return pod | {"metadata": kept | deleted, "spec": spec, "status": status}


def is_ignored(group: LiveGroup) -> bool:
    return ignores_progress(group.obj, group.leader, group.objects.statefulsets, group.facts)


def with_pods(group: LiveGroup, *pods: JSONObject) -> LiveGroup:
    return replace(group, leader=pods[0], objects=replace(group.objects, pods=pods))


@given(st.data())
@settings(max_examples=examples(400))
def test_ignored_start_of_a_pod_alters_no_plan(data: st.DataObject) -> None:
    group = data.draw(plain_groups())
    leader, worker = (data.draw(states(pod)) for pod in group.objects.pods)
    before = with_pods(group, leader, *data.draw(st.sampled_from([(worker,), (worker,), ()])))
    is_leader = data.draw(st.booleans())
    changed = data.draw(states(leader if is_leader else worker))
    old = leader if is_leader else worker if len(before.objects.pods) > 1 else None
    after = with_pods(group, changed, *before.objects.pods[1:]) if is_leader else with_pods(group, leader, changed)
    if is_ignored(after) and startprogress.is_pod_start(old, changed) and after.workers is not None:
        event("ignored")
        plan = reconcile_group(before)
        # the deletion of the leader causes the next decision, which observes the pod
        assert plan == reconcile_group(after) or any(isinstance(action, Delete) for action in plan.actions)


@given(st.data())
@settings(max_examples=examples(100))
def test_ignored_status_of_workers_alters_no_plan(data: st.DataObject) -> None:
    before = data.draw(plain_groups())
    status = {"replicas": data.draw(st.integers(0, 3)), "readyReplicas": data.draw(st.integers(0, 3))}
    after = replace(
        before,
        objects=replace(
            before.objects, statefulsets=tuple(obj | {"status": status} for obj in before.objects.statefulsets)
        ),
    )
    changes = zip(before.objects.statefulsets, after.objects.statefulsets, strict=True)
    if is_ignored(after) and all(startprogress.is_status_change(*change) for change in changes):
        assert reconcile_group(before) == reconcile_group(after)


@given(st.data())
@settings(max_examples=examples(100))
def test_terminating_leader_that_is_ignored_has_no_plan(data: st.DataObject) -> None:
    group = data.draw(plain_groups())
    leader = group.leader | {"metadata": group.leader["metadata"] | DELETED}
    ending = with_pods(group, leader, *group.objects.pods[1:])
    if is_ignored(ending):
        assert reconcile_group(ending) == Plan()


SPECIAL: Final[tuple[tuple[JSONObject, JSONObject, JSONObject], ...]] = (
    ({"leaderWorkerTemplate": {"restartPolicy": "RecreateGroupAfterStart"}}, {}, {}),
    ({}, {labels.RECREATE_GROUP_AFTER_START: "true"}, {}),
    ({"scheduling": {}}, {}, {}),
    ({}, {labels.RUN_TO_COMPLETION: "true"}, {}),
    ({}, {labels.RELEASE_LOST_PODS_AFTER: "1m"}, {}),
    ({}, {}, {"spec": {"readinessGates": [{"conditionType": labels.GROUP_READY}]}}),
    ({}, {}, {"metadata": {"annotations": {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}}}),
)
"""Fields, annotations and leaders for which the progress of a group is not ignored."""


@pytest.mark.parametrize(("spec", "annotations", "leader"), SPECIAL)
def test_groups_with_rules_for_a_start_do_not_ignore_it(
    spec: JSONObject, annotations: JSONObject, leader: JSONObject
) -> None:
    plain = {"metadata": {}, "spec": {"leaderWorkerTemplate": {"restartPolicy": "RecreateGroupOnPodRestart"}}}
    special = {"metadata": {"annotations": annotations}, "spec": plain["spec"] | spec}
    assert ignores_progress(plain, {}, (), opted_in(Configuration()))
    assert not ignores_progress(special, leader, (), ())
