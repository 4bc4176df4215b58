"""Tests the creation, repair and deletion of pods by the StatefulSet controller."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from testkit.objects import merge
from tests.unit.localkube.controllers.objects import NOW, build_statefulset, build_template, ready_status

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.plan import Concurrently, Create, Delete, Emit, Finally, Patch, Plan, PutStatus
from localkube.controllers.statefulset import identity, revisions, setcontrol
from localkube.controllers.statefulset.setcontrol import ObservedStatefulSet

OLD = revisions.build(build_statefulset(), 1, 0)
NEW = revisions.build(build_statefulset(template=build_template("v2")), 2, 0)
PARALLEL = {"podManagementPolicy": "Parallel"}
FAILED: JSONObject = {"status": {"phase": "Failed"}}
READY: JSONObject = {"status": ready_status()}
GOING: JSONObject = {"metadata": {"deletionTimestamp": "2026-01-01T11:59:59Z"}}


def observe(
    statefulset: JSONObject,
    pods: Mapping[int, tuple[JSONObject, JSONObject]],
    *,
    update: JSONObject = OLD,
    claims: Mapping[str, JSONObject] | None = None,
) -> ObservedStatefulSet:
    """Return the observation of a StatefulSet and its pods by ordinal, with their differences from new pods."""
    return ObservedStatefulSet(
        statefulset=statefulset,
        pods=[existing(statefulset, ordinal, *pod) for ordinal, pod in pods.items()],
        claims=claims or {},
        current=OLD,
        update=update,
        collisions=0,
        now=NOW,
    )


def existing(statefulset: JSONObject, ordinal: int, revision: JSONObject, change: JSONObject) -> JSONObject:
    """Return the pod as the API server stores it."""
    made = {"metadata": {"uid": f"uid-{ordinal}", "resourceVersion": "7"}, "status": {"phase": "Pending"}}
    return merge(merge(identity.build_pod(statefulset, revision, ordinal), made), change)


def words(result: setcontrol.StatefulSetDecision) -> list[list[str]]:
    """Return the plan as a string for each phase, for example `create web-0` or `delete web-1`."""
    return [[word(step) for steps in phase for step in steps] for phase in result.phases]


def word(step: Any) -> str:
    """Return the action as a string."""
    match step:
        case Create():
            return f"create {meta.name(step.object)}"
        case Delete():
            return f"delete {step.key.name}"
        case Patch():
            return f"patch {step.key.name}"
        case Emit():
            return step.events[0].reason
    raise AssertionError(step)


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        pytest.param({}, {}, [["create web-0"]], id="ordered: begins with the lowest"),
        pytest.param({}, {0: (OLD, {})}, [], id="ordered: waits until it is ready"),
        pytest.param({}, {0: (OLD, READY)}, [["create web-1"]], id="ordered: goes on"),
        pytest.param({}, {0: (OLD, READY | GOING), 1: (OLD, READY)}, [], id="ordered: a terminating pod blocks"),
        pytest.param({"minReadySeconds": 61}, {0: (OLD, READY)}, [], id="ordered: waits until it is available"),
        pytest.param(PARALLEL, {}, [["create web-0", "create web-1", "create web-2"]], id="parallel: all at once"),
        pytest.param(PARALLEL, {1: (OLD, GOING)}, [["create web-0", "create web-2"]], id="parallel: ordinal is taken"),
        pytest.param(
            {"replicas": 2, "ordinals": {"start": 5}} | PARALLEL,
            {0: (OLD, READY)},
            [["create web-5", "create web-6"], ["delete web-0"]],
            id="ordinals start where told",
        ),
        pytest.param(
            {"replicas": 1},
            {0: (OLD, READY), 1: (OLD, READY), 2: (OLD, READY)},
            [["delete web-2"]],
            id="ordered: scales down from the highest",
        ),
        pytest.param(
            {"replicas": 1},
            {0: (OLD, READY), 1: (OLD, READY), 2: (OLD, READY | GOING)},
            [],
            id="ordered: waits for the one that goes",
        ),
        pytest.param(
            {"replicas": 1},
            {0: (OLD, READY), 1: (OLD, {}), 2: (OLD, {})},
            [],
            id="ordered: an unready condemned pod waits for a lower unhealthy one",
        ),
        pytest.param(
            {"replicas": 1},
            {0: (OLD, READY), 1: (OLD, READY), 2: (OLD, {})},
            [["delete web-2"]],
            id="ordered: the first unhealthy pod may go",
        ),
        pytest.param(
            {"replicas": 1} | PARALLEL,
            {0: (OLD, {}), 1: (OLD, READY), 2: (OLD, {})},
            [["delete web-2", "delete web-1"]],
            id="parallel: scales down at once",
        ),
        pytest.param(
            {"replicas": 1},
            {0: (OLD, FAILED)},
            [["delete web-0"]],
            id="a failed pod is deleted",
        ),
        pytest.param(
            {"replicas": 1},
            {0: (OLD, {"status": {"phase": "Succeeded"}})},
            [["delete web-0"]],
            id="a finished pod is deleted",
        ),
        pytest.param({"replicas": 1}, {0: (OLD, FAILED | GOING)}, [], id="once"),
    ],
)
def test_scaling_creates_and_deletes_pods(
    spec: JSONObject, pods: dict[int, tuple[JSONObject, JSONObject]], expected: list[list[str]]
) -> None:
    assert words(setcontrol.decide(observe(build_statefulset(**spec), pods))) == expected


ALL_OLD = dict.fromkeys(range(3), (OLD, READY))


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        pytest.param({}, ALL_OLD, [["delete web-2"]], id="the highest first"),
        pytest.param(PARALLEL, ALL_OLD, [["delete web-2"]], id="parallel: one at a time too"),
        pytest.param(PARALLEL, ALL_OLD | {2: (NEW, {})}, [], id="waits for the new one"),
        pytest.param(PARALLEL, ALL_OLD | {2: (OLD, READY | GOING)}, [], id="waits for the old one to go"),
        pytest.param(PARALLEL, ALL_OLD | {2: (NEW, READY)}, [["delete web-1"]], id="goes on"),
        pytest.param(PARALLEL | {"minReadySeconds": 61}, ALL_OLD | {2: (NEW, READY)}, [], id="waits for availability"),
        pytest.param(
            {"updateStrategy": {"rollingUpdate": {"partition": 2}}},
            ALL_OLD | {2: (NEW, READY)},
            [],
            id="stops at the partition",
        ),
        pytest.param({"updateStrategy": {"rollingUpdate": {"partition": 9}}}, ALL_OLD, [], id="partition past the end"),
        pytest.param({"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}, ALL_OLD, [], id="OnDelete"),
        pytest.param(
            PARALLEL,
            ALL_OLD | {1: (OLD, FAILED)},
            [["delete web-1"], ["delete web-2"]],
            id="a failed pod below goes at the same time",
        ),
    ],
)
def test_rolling_update_replaces_pods(
    spec: JSONObject, pods: dict[int, tuple[JSONObject, JSONObject]], expected: list[list[str]]
) -> None:
    assert words(setcontrol.decide(observe(build_statefulset(**spec), pods, update=NEW))) == expected


@pytest.mark.parametrize(
    ("strategy", "status", "ordinal", "revision"),
    [
        pytest.param({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, {}, 1, OLD, id="below partition"),
        pytest.param({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, {}, 2, NEW, id="at partition"),
        pytest.param({"type": "RollingUpdate"}, {"currentReplicas": 2}, 1, OLD, id="below the current replicas"),
        pytest.param({"type": "RollingUpdate"}, {"currentReplicas": 1}, 1, NEW, id="past the current replicas"),
        pytest.param({"type": "OnDelete"}, {"currentReplicas": 3}, 0, NEW, id="OnDelete: always the update"),
    ],
)
def test_pod_is_recreated_at_the_revision_of_its_ordinal(
    strategy: JSONObject, status: JSONObject, ordinal: int, revision: JSONObject
) -> None:
    statefulset = build_statefulset({"status": status})
    statefulset["spec"]["updateStrategy"] = strategy
    pod = setcontrol.build_pod(observe(statefulset, {}, update=NEW), ordinal)
    assert identity.pod_revision(pod) == meta.name(revision)
    assert pod["spec"]["containers"] == revisions.read_template(revision)["spec"]["containers"]


def test_set_being_deleted_touches_no_pod() -> None:
    statefulset = build_statefulset(GOING, replicas=0)
    assert setcontrol.decide(observe(statefulset, {0: (OLD, FAILED)})).phases == ()


def test_creation_and_deletion_emit_events() -> None:
    result = setcontrol.decide(observe(build_statefulset(replicas=1, **PARALLEL), {1: (OLD, READY)}))
    create, delete = (phase[0][0] for phase in result.phases)
    assert isinstance(create, Create)
    assert isinstance(delete, Delete)
    assert create.is_silent_if_exists
    assert [(event.type, event.reason, event.note) for event in (*create.on_success, *create.on_failure)] == [
        ("Normal", "SuccessfulCreate", "Create Pod web-0 in StatefulSet web successful"),
        ("Warning", "FailedCreate", "Create Pod web-0 in StatefulSet web failed error: {error}"),
    ]
    assert delete.uid == "uid-1"
    assert delete.on_success[0].note == "Delete Pod web-1 in StatefulSet web successful"


def test_edited_identity_is_repaired_with_preconditions() -> None:
    statefulset = build_statefulset(replicas=1)
    edited = merge(READY, {"metadata": {"labels": {identity.POD_NAME_LABEL: "other"}}})
    [[[step]]] = setcontrol.decide(observe(statefulset, {0: (OLD, edited)})).phases
    assert isinstance(step, Patch)
    assert step.patch["metadata"]["labels"][identity.POD_NAME_LABEL] == "web-0"
    assert (step.patch["metadata"]["uid"], step.patch["metadata"]["resourceVersion"]) == ("uid-0", "7")


def test_set_is_requeued_when_the_next_pod_becomes_available() -> None:
    statefulset = build_statefulset(minReadySeconds=100, **PARALLEL)
    pods = {0: (OLD, {"status": ready_status(60)}), 1: (OLD, {"status": ready_status(70)}), 2: (OLD, {})}
    assert setcontrol.decide(observe(statefulset, pods)).requeue_after == 30


CLAIMS = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"resources": {}}}]}
WHEN_SCALED = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}


def build_claim(name: str, **metadata: object) -> JSONObject:
    """Build an existing volume claim."""
    return {"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "3"} | metadata}


def test_claims_are_created_before_their_pod() -> None:
    statefulset = build_statefulset(replicas=1, **CLAIMS)
    assert words(setcontrol.decide(observe(statefulset, {}))) == [["create data-web-0", "create web-0"]]
    assert words(setcontrol.decide(observe(statefulset, {}, claims={"data-web-0": build_claim("data-web-0")}))) == [
        ["create web-0"]
    ]


def test_lost_claim_of_a_pending_pod_is_created_again() -> None:
    assert words(setcontrol.decide(observe(build_statefulset(replicas=1, **CLAIMS), {0: (OLD, {})}))) == [
        ["create data-web-0"]
    ]


def test_pod_waits_for_a_claim_being_deleted() -> None:
    going = build_claim("data-web-0", deletionTimestamp="2026-01-01T11:59:59Z")
    result = setcontrol.decide(observe(build_statefulset(replicas=1, **CLAIMS), {}, claims={"data-web-0": going}))
    [[[step]]] = result.phases
    assert isinstance(step, Emit)
    assert step.events[0].note.endswith("failed error: pvc data-web-0 is being deleted")


def test_pod_waits_for_a_claim_of_its_predecessor() -> None:
    owner = {"kind": "Pod", "name": "web-0", "uid": "former"}
    stale = build_claim("data-web-0", ownerReferences=[owner])
    statefulset = build_statefulset(replicas=1, **CLAIMS, **WHEN_SCALED)
    assert setcontrol.decide(observe(statefulset, {}, claims={"data-web-0": stale})).phases == ()


def test_scaled_down_pod_owns_its_claims_by_policy() -> None:
    statefulset = build_statefulset(replicas=0, **CLAIMS, **WHEN_SCALED)
    result = setcontrol.decide(
        observe(statefulset, {0: (OLD, READY)}, claims={"data-web-0": build_claim("data-web-0")})
    )
    assert words(result) == [["patch data-web-0", "delete web-0"]]


MOST = 2**31 - 1


@pytest.mark.parametrize("fields", [PARALLEL, {}], ids=["Parallel", "OrderedReady"])
@pytest.mark.parametrize("ordinals", [{}, {"ordinals": {"start": MOST}}], ids=["from 0", "from the highest"])
def test_two_billion_replicas_are_created_in_batches(fields: JSONObject, ordinals: JSONObject) -> None:
    statefulset = build_statefulset(replicas=MOST, **fields, **ordinals)
    found = words(setcontrol.decide(observe(statefulset, {})))
    start = MOST if ordinals else 0
    count = setcontrol.AT_ONCE if fields else 1
    assert found == [[f"create web-{ordinal}" for ordinal in range(start, start + count)]]


def test_missing_pods_are_created_after_existing_ones() -> None:
    statefulset = build_statefulset(replicas=MOST, **PARALLEL)
    there = dict.fromkeys((0, 1, 3), (OLD, READY))
    (created,) = words(setcontrol.decide(observe(statefulset, there)))
    assert created[:3] == ["create web-2", "create web-4", "create web-5"]
    assert len(created) == setcontrol.AT_ONCE


def test_rollout_with_two_billion_replicas_makes_progress() -> None:
    statefulset = build_statefulset(
        replicas=MOST, updateStrategy={"rollingUpdate": {"partition": MOST - 2}}, **PARALLEL
    )
    result = setcontrol.decide(observe(statefulset, {MOST - 1: (OLD, READY)}, update=NEW))
    assert words(result)[0][0] == "create web-0"
    assert result.status["replicas"] == 1


def test_status_is_written_after_the_pods_and_history_cut_last() -> None:
    statefulset = build_statefulset(replicas=1, revisionHistoryLimit=0)
    renewal = (Create(resource=CONTROLLER_REVISIONS, object=NEW),)
    obsolete = merge(OLD, {"metadata": {"name": "web-obsolete", "uid": "obsolete"}})
    observed = replace(observe(statefulset, {}, update=NEW), history=(obsolete, OLD), revision_actions=renewal)

    result = setcontrol.plan(observed)

    created, changes, deleted = result.actions
    assert created == renewal[0]
    assert isinstance(changes, Finally)
    assert isinstance(deleted, Delete)
    [phase] = changes.actions
    assert isinstance(phase, Concurrently)
    assert [word(action) for actions in phase.sequences for action in actions] == ["create web-0"]
    [put] = changes.after
    assert isinstance(put, PutStatus)
    assert (put.object["status"]["updateRevision"], put.resource_version) == (meta.name(NEW), "1")
    assert (deleted.key.name, deleted.uid) == ("web-obsolete", "obsolete")


def test_settled_set_has_an_empty_plan() -> None:
    settled = build_statefulset(replicas=1)
    settled |= {"status": setcontrol.decide(observe(settled, {0: (OLD, READY)})).status}

    assert setcontrol.plan(observe(settled, {0: (OLD, READY)})) == Plan()
