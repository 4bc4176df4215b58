"""Tests the Service, the workers, and the readiness of a leader with a random key."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, SERVICES, STATEFULSETS
from kuberuntime.plan import Apply, Create, Delete, Patch, Plan
from leaderworkerset.api import groupname, labels
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.core.policies.policy import LiveGroup

LWS = builders.hash_object()
LEADER = builders.hash_leader(LWS)


def group(leader: JSONObject = LEADER, lws: JSONObject = LWS, **fields: Any) -> LiveGroup:
    return builders.whole_group(lws=lws, leader=leader, **{"statefulsets": ()} | fields)


def workers(leader: JSONObject = LEADER, *, name: str = "web-aaaaaaaa", ready: bool = True) -> JSONObject:
    made = builders.worker_statefulset(leader, ready=ready)
    return made | {"metadata": made["metadata"] | {"name": name}}


def conditioned(leader: JSONObject, **statuses: str) -> JSONObject:
    found = [{"type": kind, "status": status} for kind, status in statuses.items()]
    return leader | {"status": leader["status"] | {"conditions": found}}


def report(plan: Plan) -> tuple[str, str] | None:
    """Return the status and reason of the leader condition in a plan."""
    for action in plan.actions:
        if isinstance(action, Patch):
            assert (action.resource, action.subresource, action.kind) == (PODS, "status", "strategic")
            (one,) = action.patch["status"]["conditions"]
            assert one["type"] == labels.GROUP_READY
            return one["status"], one["reason"]
    return None


def created(plan: Plan) -> list[tuple[str, str]]:
    return [(action.resource.kind, meta.name(action.object)) for action in plan.actions if isinstance(action, Create)]


def test_workers_are_named_after_the_host_of_their_leader() -> None:
    """The pod name identifies the leader (N-HASH-20, N-HASH-21, N-KEY-2)."""
    (create,) = reconcile(group()).actions

    assert isinstance(create, Create)
    assert (create.resource, meta.name(create.object)) == (STATEFULSETS, "web-aaaaaaaa")
    assert meta.labels(create.object)[labels.GROUP_INDEX] == "a" * 40
    assert create.object["spec"]["serviceName"] == "web"
    annotations = create.object["spec"]["template"]["metadata"]["annotations"]
    assert annotations[labels.LEADER_NAME] == meta.name(LEADER)
    assert annotations[labels.LEADER_ADDRESS] == "web-aaaaaaaa.web.default"
    assert annotations[labels.GROUP_IDENTITY] == "Hash"


def test_gated_leader_has_a_service_and_no_workers() -> None:
    """The subdomain of the leader is used, not the current spec (N-HASH-22, N-HASH-23, N-AT-8)."""
    own = builders.hash_leader(LWS, gated=True)
    own["spec"]["subdomain"] = "web-aaaaaaaa"

    assert created(reconcile(group(own))) == [(SERVICES.kind, "web-aaaaaaaa")]
    unique = builders.hash_object(spec={"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})
    assert created(reconcile(group(builders.hash_leader(unique), unique))) == [(STATEFULSETS.kind, "web-aaaaaaaa")]


def test_workers_named_after_the_leader_pod_are_recognized() -> None:
    assert created(reconcile(group(statefulsets=[workers(name=meta.name(LEADER))]))) == []


@pytest.mark.parametrize(
    ("known", "found", "expected"),
    [
        ({}, [workers(ready=False)], ("False", "WorkerStatefulSetNotReady")),
        ({}, [workers()], ("True", "WorkerStatefulSetReady")),
        ({labels.GROUP_READY: "False"}, [workers()], ("True", "WorkerStatefulSetReady")),
        ({labels.GROUP_READY: "True"}, [], ("False", "WorkerStatefulSetNotReady")),
        ({labels.GROUP_READY: "True"}, [workers()], None),
        ({labels.GROUP_READY: "False"}, [workers(ready=False)], None),
        ({}, [], None),
    ],
)
def test_leader_is_ready_with_its_workers(
    known: dict[str, str], found: list[JSONObject], expected: tuple[str, str] | None
) -> None:
    """The condition is written when it changes (N-HASH-25)."""
    assert report(reconcile(group(conditioned(LEADER, **known), statefulsets=found))) == expected


def test_leader_without_a_readiness_gate_gets_no_condition() -> None:
    alone = builders.hash_object(size=1)

    assert reconcile(group(builders.hash_leader(alone), alone)) == Plan()


def test_workers_wait_for_the_containers_of_their_leader() -> None:
    """The pod becomes ready together with its workers (N-HASH-8)."""
    awaiting = builders.hash_object(spec={"startupPolicy": "LeaderReady"})

    def plan(**known: str) -> Plan:
        return reconcile(group(conditioned(builders.hash_leader(awaiting), **known), awaiting))

    assert created(plan(ContainersReady="False", Ready="False")) == []
    assert created(plan(ContainersReady="True", Ready="False")) == [(STATEFULSETS.kind, "web-aaaaaaaa")]


@pytest.mark.parametrize("field", ["hostname", "subdomain"])
def test_leader_without_a_host_name_creates_no_objects(field: str) -> None:
    """The plan for a leader without a host name does not create objects (N-HASH-22)."""
    nameless = LEADER | {"spec": {key: value for key, value in LEADER["spec"].items() if key != field}}

    plan = reconcile(group(nameless))

    assert (plan.actions, "does not have a hostname or subdomain" in str(plan.error)) == ((), True)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_terminated_leader_stops_its_group(phase: str) -> None:
    """A ReplicaSet replaced the leader under any policy, but does not delete it or its workers (N-HASH-6)."""
    kept = builders.hash_object(template={"restartPolicy": "None"})

    (delete,) = reconcile(group(builders.hash_leader(kept, phase=phase), kept)).actions

    assert isinstance(delete, Delete)
    assert (delete.key.name, delete.propagation) == (meta.name(LEADER), "Foreground")


def test_failed_worker_terminates_its_group() -> None:
    """The worker's owner belongs to its leader (R-POD-4, R-POD-8)."""
    worker = builders.worker_pod(LEADER, restarts=1)
    owned = worker["metadata"] | {
        "name": "web-aaaaaaaa-1",
        "annotations": {labels.GROUP_IDENTITY: "Hash", labels.LEADER_NAME: meta.name(LEADER)},
        "ownerReferences": [meta.controller_reference(workers())],
    }
    observed = group(pods=(LEADER, worker | {"metadata": owned}), statefulsets=[workers()])

    deleted = [action.key.name for action in reconcile(observed).actions if isinstance(action, Delete)]

    assert deleted == [meta.name(LEADER)]


def test_record_of_the_previous_group_is_continued() -> None:
    """The recreation after the second consecutive failure is delayed, and one record remains."""
    first = reconcile(group(builders.hash_leader(LWS, restarts=1)))
    (record,) = [action.object for action in first.actions if isinstance(action, Apply)]
    stored = record | {"metadata": record["metadata"] | {"uid": "uid-of-record"}}
    second = builders.hash_leader(LWS, "b", restarts=1, replaces=meta.name(LEADER))

    plan = reconcile(group(second, record=stored))

    (written,) = [action.object for action in plan.actions if isinstance(action, Apply)]
    (dropped,) = [action.key.name for action in plan.actions if isinstance(action, Delete)]
    assert meta.annotations(written)[labels.RECREATIONS] == "2"
    assert meta.name(written) == f"{meta.name(second)}-recreations"
    assert dropped == meta.name(record)
    assert plan.requeue_after == 10


def test_revisions_are_selected_by_the_label_of_the_leader() -> None:
    older = builders.hash_object(image="app:0")
    leader = builders.hash_leader(LWS, key=builders.key_of(older))

    (create,) = reconcile(group(leader, revisions=[builders.revision(LWS, number=2), builders.revision(older)])).actions

    assert isinstance(create, Create)
    assert create.object["spec"]["template"]["spec"]["containers"][0]["image"] == "app:0"
    assert groupname.revision_key(create.object) == builders.key_of(older)
