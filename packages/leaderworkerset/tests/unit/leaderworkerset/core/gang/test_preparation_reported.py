"""Tests the condition that reports whether the prerequisites of `spec.scheduling` exist."""

from tests import builders, scheduled
from tests.scheduled import GANG, REPLICA, WHOLE
from tests.unit.leaderworkerset.core.gang.test_preparation import (
    NAME,
    OBJ,
    POD_GROUP,
    WORKLOAD,
    condition,
    created,
    plan_for,
    pod_group,
)

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Create, Finally
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core.gang.gangs import Gangs
from leaderworkerset.core.gang.native import POD_GROUPS
from leaderworkerset.core.leaderworkerset import deploymentleaders
from leaderworkerset.core.policies.gang import Gang


def with_leaders(obj: JSONObject, *objects: JSONObject, gang: Gang = GANG) -> JSONObject | None:
    """Return the condition that is written when the controller observes the leaders' object."""
    decoded = leaderworkerset.decode(obj)
    living = builders.as_applied(deploymentleaders.build(obj, decoded, key=builders.key_of(obj), size=3))
    return condition(plan_for(obj, *objects, gang=gang, leader_workload=living))


def test_condition_is_true_when_everything_exists() -> None:
    """The condition is True when all objects exist (N-ST-14, N-API-5)."""
    whole, replica = (scheduled.lws(one, spec={"groupIdentity": "Hash"}) for one in (WHOLE, REPLICA))
    workload, made = scheduled.workload_of(whole), pod_group(whole)

    assert with_leaders(whole, workload) is None
    found = with_leaders(whole, workload, made)
    assert found == {
        "type": "WorkloadSchedulingCreated",
        "status": "True",
        "reason": "SchedulingPrerequisitesCreated",
        "message": "scheduling prerequisites created",
        "lastTransitionTime": "2026-03-01T12:00:00Z",
        "observedGeneration": 1,
    }
    assert with_leaders(replica, scheduled.workload_of(replica)) == found
    assert with_leaders(replica, gang=Gangs(default="volcano")) == found
    assert with_leaders(builders.hash_object()) is None


def test_unchanged_condition_keeps_its_time() -> None:
    obj = scheduled.lws(REPLICA, spec={"groupIdentity": "Hash"})
    known = [{"type": "WorkloadSchedulingCreated", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]

    found = with_leaders(obj | {"status": {"conditions": known}}, scheduled.workload_of(obj))

    assert found is not None
    assert (found["lastTransitionTime"], found["reason"]) == ("2026-01-01T00:00:00Z", "SchedulingPrerequisitesCreated")


def test_rejected_scheduling_object_is_reported_once() -> None:
    """The rejection is reported only once, although the write is retried (N-K8S-10)."""
    (refused,) = (one for one in plan_for(OBJ).actions if isinstance(one, Finally))

    (patch,) = refused.on_failure
    (create,) = refused.actions
    assert isinstance(create, Create)
    assert [(event.reason, event.note) for event in create.on_failure] == [("WorkloadCreateFailed", "{error}")]
    assert (patch.subresource, patch.key, patch.patch["metadata"]["uid"]) == ("status", meta.key(OBJ), "uid-of-web")
    (told,) = patch.patch["status"]["conditions"]
    assert (told["status"], told["reason"], told["message"]) == ("False", "WorkloadCreateFailed", "{error}")
    (again,) = (one for one in plan_for(OBJ | {"status": {"conditions": [told]}}).actions if isinstance(one, Finally))
    assert again.on_failure == ()


def test_workloads_of_the_native_provider_are_not_deleted() -> None:
    """Workloads can belong to LeaderWorkerSets without the field. A stored object may be older than the field."""
    older = scheduled.stored(WORKLOAD, name="web-rev-2", labels={labels.TEMPLATE_REVISION_HASH: builders.key_of(OBJ)})

    assert created(plan_for(OBJ, older)).keys() == {f"Workload {NAME}"}
    assert GANG.delete_unused([WORKLOAD, POD_GROUP], []) == []
    assert POD_GROUPS in GANG.resources
