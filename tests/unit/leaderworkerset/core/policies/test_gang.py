"""The seam of gang schedulers: when one is asked, what it may do, and that nothing happens without one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, SERVICES, STATEFULSETS
from kuberuntime.plan import Action, Create, Delete
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.admission.leaderworkerset import validate_leaderworkerset
from leaderworkerset.core.admission.pod import admit_pod
from leaderworkerset.core.leaderworkerset import reconcile as of_lws
from leaderworkerset.core.leaderworkerset.groups import describe
from leaderworkerset.core.pod import reconcile as of_group
from leaderworkerset.core.policies.gang import NO_GANG, members_to_start
from leaderworkerset.core.policies.policy import LiveGroup

OBJECT = builders.leaderworkerset_object()
REVISION = builders.revision(OBJECT)
LEADER = builders.leader_pod(OBJECT)
GROUP_KIND = CONTROLLER_REVISIONS
"""Stands for the kind of the scheduler's objects; the seam does not care which it is."""


@dataclass
class EveryPod:
    """A gang scheduler with one object per group and one for all, named like the leader and like the set."""

    is_used: bool = True
    refused: list[FieldError] = field(default_factory=list)

    def applies(self, _lws: LeaderWorkerSet) -> bool:
        return self.is_used

    def errors(self, _lws: LeaderWorkerSet) -> Sequence[FieldError]:
        return self.refused

    def mark(self, pod: JSONObject) -> JSONObject:
        name = "-".join(meta.labels(pod)[key] for key in (labels.NAME, labels.GROUP_INDEX))
        metadata = meta.metadata(pod)
        return pod | {"metadata": metadata | {"annotations": meta.annotations(pod) | {"gang": name}}}

    def minimum_members(self, lws: LeaderWorkerSet) -> int:
        return members_to_start(lws)

    def shared_objects(self, obj: JSONObject, lws: LeaderWorkerSet, revision: str) -> Sequence[Create]:
        made = {"metadata": {"name": f"{lws.name}-{revision}", "namespace": meta.namespace(obj)}}
        return (Create(resource=GROUP_KIND, object=made, if_absent=True),)

    def group_objects(self, group: LiveGroup) -> Sequence[Create]:
        if group.gang_objects:
            return ()
        made = {"metadata": {"name": meta.name(group.leader)}, "spec": {"minMember": self.minimum_members(group.lws)}}
        return (Create(resource=GROUP_KIND, object=made),)

    def outdated(self, observed: Sequence[JSONObject], leaders: Collection[str]) -> Sequence[Delete]:
        return [
            Delete(resource=GROUP_KIND, key=meta.key(one), propagation="Background", uid=meta.uid(one))
            for one in observed
            if meta.name(one) not in leaders
        ]


def kinds(actions: Sequence[Action]) -> list[str]:
    return [f"{action.resource.kind} {meta.name(action.object)}" for action in actions if isinstance(action, Create)]


def group(obj: JSONObject = OBJECT, gang_objects: Sequence[JSONObject] = ()) -> of_group.Observed:
    return of_group.Observed(
        leader=LEADER, leaderworkerset=obj, pods=(LEADER,), revisions=(REVISION,), gang_objects=gang_objects
    )


def test_the_object_of_a_group_is_created_before_its_workers() -> None:
    """R-GANG-3: a creation that fails ends the plan, and no workers appear (R-GANG-7)."""
    plan = of_group.reconcile(group(), builders.NOW, EveryPod())

    assert kinds(plan.actions) == [f"{GROUP_KIND.kind} web-0", f"{STATEFULSETS.kind} web-0"]
    assert plan.actions[0].object["spec"] == {"minMember": 2}  # type: ignore[union-attr]


def test_a_group_of_one_pod_has_its_object_too() -> None:
    """R-GANG-3: before the size is considered."""
    obj = builders.leaderworkerset_object(size=1)

    assert kinds(of_group.reconcile(group(obj), builders.NOW, EveryPod()).actions) == [f"{GROUP_KIND.kind} web-0"]


def test_an_object_that_exists_is_not_created_again() -> None:
    """R-GANG-3: never updated."""
    plan = of_group.reconcile(group(gang_objects=[{"metadata": {"name": "web-0"}}]), builders.NOW, EveryPod())

    assert kinds(plan.actions) == [f"{STATEFULSETS.kind} web-0"]


@pytest.mark.parametrize(("policy", "expected"), [("LeaderCreated", 2), ("LeaderReady", 1)])
def test_workers_that_await_their_leader_are_not_counted(policy: str, expected: int) -> None:
    """R-GANG-4."""
    lws = leaderworkerset.decode(OBJECT | {"spec": OBJECT["spec"] | {"startupPolicy": policy}})

    assert members_to_start(lws) == expected


def test_what_all_groups_share_is_created_before_the_leader_statefulset() -> None:
    """R-KQ-148."""
    plan = of_lws.reconcile(of_lws.Observed(leaderworkerset=OBJECT), builders.NOW, EveryPod())

    order = [action.resource for action in plan.actions]  # type: ignore[union-attr]
    assert order == [CONTROLLER_REVISIONS, GROUP_KIND, STATEFULSETS, SERVICES]


def test_objects_of_groups_that_are_gone_are_deleted() -> None:
    """R-KQ-148."""
    objects = [builders.leader_pod(OBJECT, index) for index in (0, 7)]
    observed = of_lws.Observed(
        leaderworkerset=OBJECT,
        leader_statefulset=builders.as_applied(builders.worker_statefulset(LEADER)),
        groups=(describe(LEADER, None),),
        gang_objects=objects,
    )

    plan = of_lws.reconcile(observed, builders.NOW, EveryPod())

    deleted = [action.key.name for action in plan.actions if isinstance(action, Delete)]
    assert deleted == ["web-7"]


def test_pods_are_marked_when_all_their_labels_are_set() -> None:
    """R-GANG-2."""
    pod = builders.leader_pod(OBJECT)
    pod["metadata"]["annotations"] = {labels.SIZE: "2"}

    assert meta.annotations(admit_pod(pod, EveryPod()))["gang"] == "web-0"


def test_combinations_that_would_never_start_are_refused() -> None:
    """R-KQ-149."""
    error = invalid("spec.startupPolicy", "LeaderReady", "workers would wait for ever")

    assert validate_leaderworkerset(OBJECT, gang=EveryPod(refused=[error])) == [error]
    assert validate_leaderworkerset(OBJECT, gang=EveryPod(is_used=False, refused=[error])) == []


def test_without_a_gang_scheduler_nothing_is_added() -> None:
    """R-GANG-1: the default."""
    unused = EveryPod(is_used=False)

    assert of_group.reconcile(group(), builders.NOW) == of_group.reconcile(group(), builders.NOW, unused)
    assert kinds(of_group.reconcile(group(), builders.NOW, NO_GANG).actions) == [f"{STATEFULSETS.kind} web-0"]
