"""Tests scheduling that is delegated to the Workload of an owner, whose templates the PodGroups use."""

from typing import Any

import pytest
from tests import builders, decisions, scheduled
from tests.scheduled import GANG, REPLICA, WHOLE, link_of

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Create, Finally, Plan, PutStatus
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.capabilities import deciding
from leaderworkerset.core.gang.gangs import SCHEDULING
from leaderworkerset.core.leaderworkerset import deploymentleaders
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.policies import delegation
from leaderworkerset.core.policies.policy import LiveGroup, Parent, SchedulingFailure, SchedulingObjects

OWNER: JSONObject = {"apiVersion": "example.com/v1", "kind": "Pipeline", "metadata": {"name": "p", "uid": "uid-of-p"}}
TEMPLATE: JSONObject = {"name": "stage", "schedulingPolicy": {"gang": {"minCount": 7}}, "priorityClassName": "high"}
FAILED = SchedulingFailure("ParentWorkloadNotReady", "no owner has a Workload yet")


def parent(*templates: JSONObject, **metadata: Any) -> JSONObject:
    """Return the Workload of the owner."""
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": "pipeline",
            "namespace": "default",
            "uid": "uid-of-pipeline",
            "ownerReferences": [meta.controller_reference(OWNER)],
        }
        | metadata,
        "spec": {
            "controllerRef": {"apiGroup": "example.com", "kind": "Pipeline", "name": "p"},
            "podGroupTemplates": list(templates or (TEMPLATE,)),
        },
    }


def delegated(scheduling: JSONObject, **fields: Any) -> JSONObject:
    metadata = {
        "annotations": {labels.GROUP_TEMPLATE_NAME: "stage"},
        "ownerReferences": [meta.controller_reference(OWNER)],
    }
    return scheduled.lws(scheduling, metadata=metadata, **fields)


def plan_for(obj: JSONObject, found: Parent, *objects: JSONObject, **fields: Any) -> Plan:
    observed = ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        revisions=[builders.revision(obj)],
        scheduling=SchedulingObjects(objects=objects, kinds=SCHEDULING, parent=found),
        **fields,
    )
    return decisions.reconcile(observed, builders.NOW, GANG)


def created(plan: Plan) -> list[JSONObject]:
    flat = [one for action in plan.actions for one in (action.actions if isinstance(action, Finally) else (action,))]
    return [one.object for one in flat if isinstance(one, Create) and one.resource.group == "scheduling.k8s.io"]


def test_pod_group_of_the_set_belongs_to_the_owners_workload() -> None:
    """The PodGroup copies the template, and its only owner is the LeaderWorkerSet (N-K8S-16)."""
    obj = delegated(WHOLE)

    (made,) = created(plan_for(obj, parent()))

    assert made["metadata"]["ownerReferences"] == [meta.controller_reference(obj)]
    reference = {"workloadName": "pipeline", "templateName": "stage"}
    assert made["spec"] == {"workloadRef": reference} | {key: TEMPLATE[key] for key in TEMPLATE if key != "name"}
    assert created(plan_for(obj, parent(), scheduled.stored(made))) == []
    assert created(plan_for(delegated(WHOLE, replicas=0), parent())) == []


def test_pod_group_of_a_replica_belongs_to_the_owners_workload() -> None:
    """The PodGroup of a replica belongs to the owner's Workload (N-K8S-16)."""
    obj = delegated(REPLICA)
    leader = scheduled.leader(obj)
    group: dict[str, Any] = {"now": builders.NOW, "leader": leader, "obj": obj, "revisions": [builders.revision(obj)]}

    assert created(plan_for(obj, parent())) == []
    (made,) = created(
        deciding.reconcile_group(builders.live_group(**group, scheduling=SchedulingObjects(parent=parent())), GANG)
    )

    assert meta.name(made) == link_of(leader)
    assert made["spec"]["workloadRef"] == {"workloadName": "pipeline", "templateName": "stage"}
    assert created(deciding.reconcile_group(builders.live_group(**group), GANG)) == []
    failed = deciding.reconcile_group(builders.live_group(**group, scheduling=SchedulingObjects(parent=FAILED)), GANG)
    assert failed == Plan(error=f"pod default/web-0: {FAILED.message}")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (FAILED, FAILED.message),
        (parent(TEMPLATE | {"name": "other"}), 'Workload default/pipeline has no PodGroup template "stage"'),
    ],
)
def test_leaders_are_unchanged_without_the_owners_workload(found: Parent, message: str) -> None:
    """Without the owner's Workload, leaders do not change (N-K8S-10, N-K8S-16)."""
    plan = plan_for(delegated(REPLICA), found)

    assert plan.error == message
    (write,) = plan.actions
    assert isinstance(write, PutStatus)
    (told,) = write.object["status"]["conditions"]
    assert (told["status"], told["reason"]) == ("False", "ParentWorkloadNotReady")


def test_owners_workload_is_not_read_when_pod_groups_exist() -> None:
    obj = delegated(WHOLE, spec={"groupIdentity": "Hash"})
    living = builders.as_applied(
        deploymentleaders.build(obj, leaderworkerset.decode(obj), key=builders.key_of(obj), size=3)
    )
    (made,) = created(plan_for(obj, parent()))
    plan = plan_for(obj, parent(), scheduled.stored(made), leader_workload=living)
    (write,) = (one for one in plan.actions if isinstance(one, PutStatus))
    done = obj | {"status": write.object["status"]}

    assert delegation.is_parent_required(obj, [])
    assert delegation.is_parent_required(done, [])
    assert not delegation.is_parent_required(done, [made])
    assert not delegation.is_parent_required(done | {"spec": done["spec"] | {"scheduling": REPLICA}}, [])
    assert not delegation.is_parent_required(scheduled.lws(WHOLE), [])
    assert created(plan_for(done, None, scheduled.stored(made))) == []


def test_group_needs_the_workload_until_its_pod_group_exists() -> None:
    obj = delegated(REPLICA)
    leader = scheduled.leader(obj)
    made = {"metadata": {"name": link_of(leader)}}

    def is_needed(obj: JSONObject, leader: JSONObject, *known: JSONObject) -> bool:
        return delegation.is_parent_required_by(
            LiveGroup(now=builders.NOW, leader=leader, obj=obj, scheduling=SchedulingObjects(objects=known))
        )

    assert is_needed(obj, leader)
    assert not is_needed(obj, leader, made)
    assert not is_needed(obj, builders.leader_pod(obj))
    assert not is_needed(scheduled.lws(REPLICA), leader)


def test_owners_workload_must_be_controlled_and_referenced() -> None:
    """Two matching Workloads cause an error (N-K8S-16)."""
    owner = meta.controller_reference(OWNER)
    unnamed = parent() | {"spec": {}}
    orphan = parent(ownerReferences=[])

    assert delegation.find_owner_workload([unnamed, orphan], owner) is None
    assert delegation.find_owner_workload([unnamed, parent()], owner) == parent()
    with pytest.raises(ValueError, match="several Workloads are controlled by Pipeline p"):
        delegation.find_owner_workload([parent(), parent(name="again")], owner)
