"""Tests when the interface of gang schedulers is called, its permitted actions, and that it is optional."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest
from tests import builders, decisions

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, STATEFULSETS, Resource
from kuberuntime.plan import Action, Create, Delete
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, decode
from leaderworkerset.capabilities import deciding
from leaderworkerset.core.admission.leaderworkerset import validate_leaderworkerset
from leaderworkerset.core.admission.pod import admit_pod
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupstate import describe
from leaderworkerset.core.policies.celmutations import PodRule
from leaderworkerset.core.policies.gang import NO_GANG, GangGroup, GangSet, Preparation, Support, initial_pod_count
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision, SchedulingObjects

OBJECT = builders.leaderworkerset_object()
REVISION = builders.revision(OBJECT)
LEADER = builders.leader_pod(OBJECT)
GROUP_KIND = CONTROLLER_REVISIONS
"""A placeholder for the kind of the scheduler's objects, which is not relevant in these tests."""


@dataclass
class EveryPod:
    """A gang scheduler with one object per group, which has the name of the leader."""

    refused: list[FieldError] = field(default_factory=list)
    holds: str = ""
    resources: Sequence[Resource] = (GROUP_KIND,)

    support: Support = field(default_factory=Support)

    @property
    def uses_gate(self) -> bool:
        return False

    @property
    def rule(self) -> PodRule:
        return PodRule(conditions={"none": "false"})

    def prepare(self, _whole: GangSet) -> Preparation:
        return Preparation()

    def errors(self, _lws: LeaderWorkerSet, _old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        return self.refused

    def mark(self, pod: JSONObject, request: str) -> JSONObject:
        name = "-".join([*(meta.labels(pod)[key] for key in (labels.NAME, labels.GROUP_INDEX)), request])
        metadata = meta.metadata(pod)
        return pod | {"metadata": metadata | {"annotations": meta.annotations(pod) | {"gang": name}}}

    def decide(self, group: GangGroup) -> PolicyDecision:
        if group.live.scheduling.objects:
            return PolicyDecision()
        made = {"metadata": {"name": meta.name(group.live.leader)}, "spec": {"minMember": group.revised.size}}
        return PolicyDecision(delay_reason=self.holds, actions=(Create(resource=GROUP_KIND, object=made),))

    def delete_unused(self, observed: Sequence[JSONObject], revisions: Collection[str]) -> Sequence[Delete]:
        return [
            Delete(resource=GROUP_KIND, key=meta.key(one), propagation="Background", uid=meta.uid(one))
            for one in observed
            if meta.labels(one)[labels.TEMPLATE_REVISION_HASH] not in revisions
        ]


def kinds(actions: Sequence[Action]) -> list[str]:
    return [f"{action.resource.kind} {meta.name(action.object)}" for action in actions if isinstance(action, Create)]


def group(obj: JSONObject = OBJECT, objects: Sequence[JSONObject] = ()) -> LiveGroup:
    return builders.live_group(
        leader=LEADER,
        obj=obj,
        pods=(LEADER,),
        revisions=(REVISION,),
        scheduling=SchedulingObjects(objects=objects),
    )


def test_gang_object_is_created_before_the_workers() -> None:
    """If the creation fails, the plan stops, and no workers are created (R-GANG-7) (R-GANG-3)."""
    plan = deciding.reconcile_group(group(), EveryPod())

    assert kinds(plan.actions) == [f"{GROUP_KIND.kind} web-0", f"{STATEFULSETS.kind} web-0"]
    assert plan.actions[0].object["spec"] == {"minMember": 2}  # type: ignore[union-attr]


def test_group_has_the_size_of_its_revision() -> None:
    """A group that is recreated during a change to the size retains its original size."""
    resized = builders.leaderworkerset_object(size=5)

    plan = deciding.reconcile_group(group(resized), EveryPod())

    assert plan.actions[0].object["spec"] == {"minMember": 2}  # type: ignore[union-attr]


def test_group_of_one_pod_has_a_gang_object() -> None:
    """The object is created before the size is considered (R-GANG-3)."""
    obj = builders.leaderworkerset_object(size=1)

    assert kinds(deciding.reconcile_group(group(obj), EveryPod()).actions) == [f"{GROUP_KIND.kind} web-0"]


def test_existing_gang_object_is_not_created_again() -> None:
    """The object is never updated (R-GANG-3)."""
    known = [{"kind": "Other", "metadata": {"name": "web-0"}}]

    plan = deciding.reconcile_group(group(objects=known), EveryPod())

    assert kinds(plan.actions) == [f"{STATEFULSETS.kind} web-0"]


def test_workers_wait_while_the_gang_scheduler_holds_them() -> None:
    plan = deciding.reconcile_group(group(), EveryPod(holds="waits"))

    assert kinds(plan.actions) == [f"{GROUP_KIND.kind} web-0"]


@pytest.mark.parametrize(
    ("policy", "annotations", "expected"),
    [
        ("LeaderCreated", {}, 2),
        ("LeaderReady", {}, 1),
        ("LeaderCreated", {labels.EXCLUSIVE_TOPOLOGY: "rack"}, 1),
    ],
    ids=["all at once", "the leader first", "where the leader is"],
)
def test_workers_that_wait_for_their_leader_are_not_counted(
    policy: str, annotations: dict[str, str], expected: int
) -> None:
    """Workers that wait for their leader do not count (R-GANG-4, R-KQ-149)."""
    obj = builders.leaderworkerset_object(spec={"startupPolicy": policy}, metadata={"annotations": annotations})

    assert initial_pod_count(leaderworkerset.decode(obj)) == expected


SELECTING = {"selector": {"matchLabels": groupname.leader_labels("web")}}


def test_unused_gang_objects_are_deleted_after_an_update() -> None:
    """Unused gang objects are deleted after an update (R-KQ-148)."""
    key = builders.key_of(OBJECT)
    objects = [
        {"kind": "Other", "metadata": {"name": name, "labels": {labels.TEMPLATE_REVISION_HASH: revision}}}
        for name, revision in (("current", key), ("older", "older"))
    ]
    leaders = [builders.leader_pod(OBJECT, index) for index in range(2)]
    observed = ObservedLeaderWorkerSet(
        leaderworkerset=OBJECT,
        leader_workload=builders.as_applied(builders.worker_statefulset(LEADER))
        | {"metadata": {"name": "web"}, "spec": SELECTING},
        revisions=(REVISION,),
        groups=builders.by_leader(describe(leader, builders.worker_statefulset(leader)) for leader in leaders),
        scheduling=SchedulingObjects(objects=objects),
    )

    plan = decisions.reconcile(observed, builders.NOW, EveryPod())

    assert [action.key.name for action in plan.actions if isinstance(action, Delete)] == ["older"]


def test_pods_are_marked_when_all_their_labels_are_set() -> None:
    """Gang annotations are added to pods after all of their labels (R-GANG-2)."""
    pod = builders.leader_pod(OBJECT)
    pod["metadata"]["annotations"] = {labels.SIZE: "2"}

    assert meta.annotations(admit_pod(pod, EveryPod(), "r1"))["gang"] == "web-0-r1"


def test_combinations_that_never_start_are_rejected() -> None:
    """Combinations that can never start are rejected (R-KQ-149)."""
    error = invalid("spec.startupPolicy", "LeaderReady", "workers would wait for ever")

    assert validate_leaderworkerset(decode(OBJECT), gang=EveryPod(refused=[error])) == [error]


def test_nothing_is_added_without_a_gang_scheduler() -> None:
    """By default, no gang scheduler is used (R-GANG-1)."""
    assert kinds(deciding.reconcile_group(group(), NO_GANG).actions) == [f"{STATEFULSETS.kind} web-0"]


def test_scheduler_choice_is_rejected_without_gang_scheduling() -> None:
    """A choice without effect causes an error, but a stored choice does not prevent other changes."""
    chosen = decode(builders.leaderworkerset_object(metadata={"annotations": {labels.GANG_SCHEDULER: "volcano"}}))

    (error,) = validate_leaderworkerset(chosen)

    assert "metadata.annotations[leaderworkerset.sigs.k8s.io/gang-scheduler]" in str(error)
    assert "gangSchedulingManagement.schedulerProvider" in str(error)
    assert validate_leaderworkerset(chosen, chosen) == []


def test_no_gang_decides_nothing() -> None:
    live = LiveGroup(obj=OBJECT, leader=LEADER, now=builders.NOW)
    group = GangGroup(live, leaderworkerset.decode(OBJECT))
    assert NO_GANG.decide(group) == PolicyDecision()
    assert NO_GANG.delete_unused([LEADER], ["key"]) == ()
    assert NO_GANG.mark(LEADER, "") == LEADER
