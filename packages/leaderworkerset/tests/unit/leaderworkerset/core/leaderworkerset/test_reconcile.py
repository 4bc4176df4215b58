"""Tests complete plans for a LeaderWorkerSet, in the order of contract 2.1."""

from typing import Any

import pytest
from msgspec import structs
from tests import builders
from tests.decisions import decide, reconcile

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, SERVICES, STATEFULSETS
from kuberuntime.plan import (
    AcceptedField,
    Action,
    Apply,
    Create,
    Emit,
    Event,
    Patch,
    Plan,
    PutStatus,
)
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.leaderworkerset import budget, groupstate, revisions, services, statefulsets, status
from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply
from leaderworkerset.core.leaderworkerset.decision import NO_RESULTS, ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.outline import Read, build_outline
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep
from leaderworkerset.core.policies.gang import NO_GANG
from leaderworkerset.core.policies.policy import NO_SERVICE, HeadlessService

LWS = builders.leaderworkerset_object()
KEY = builders.key_of(LWS)
REGARDING = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "namespace": "default",
    "name": "web",
    "uid": "uid-of-web",
    "resourceVersion": "1",
}
NOT_HEADLESS = Event(
    "Warning",
    "ServiceNotHeadless",
    "Create",
    "Service web is not headless, so pod names such as LWS_LEADER_ADDRESS cannot be resolved. Set clusterIP to None",
    REGARDING,
)


def desired(obj: dict[str, Any], *, partition: int = 0, replicas: int = 2, key: str | None = None) -> dict[str, Any]:
    lws = leaderworkerset.decode(obj)
    step = RolloutStep(RolloutCase.ROLLING, partition, replicas)
    limits = budget.read(lws.spec)
    return statefulsets.build(obj, lws, key=key or builders.key_of(obj), limits=limits, step=step)


def live(obj: dict[str, Any], *, partition: int = 0, replicas: int = 2, **fields: Any) -> dict[str, Any]:
    built = desired(obj, partition=partition, replicas=replicas)
    return builders.as_applied(built, status={"replicas": replicas}, **fields)


def ready_groups(obj: dict[str, Any], count: int, *, key: str | None = None) -> dict[str, GroupFacts]:
    leaders = [builders.leader_pod(obj, index, key=key) for index in range(count)]
    return builders.by_leader(groupstate.describe(leader, builders.worker_statefulset(leader)) for leader in leaders)


def settled(obj: dict[str, Any], observed: ObservedLeaderWorkerSet) -> dict[str, Any]:
    """Return the LeaderWorkerSet with the status that results from `observed`."""
    lws = leaderworkerset.decode(obj)
    counts = status.count(lws, index_groups(observed.groups.values(), lws.name), builders.key_of(obj))
    built = status.build(lws, observed.leader_workload or {}, counts, builders.NOW)
    return obj | {"status": leaderworkerset.encode_status(built)}


def at_rest(obj: dict[str, Any] = LWS, *, count: int = 2) -> ObservedLeaderWorkerSet:
    observed = ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        leader_workload=live(obj),
        revisions=[builders.revision(obj)],
        service=builders.SETTLED,
        groups=ready_groups(obj, count),
    )
    return replace(observed, leaderworkerset=settled(obj, observed), leader_workload=live(obj))


def replace(observed: ObservedLeaderWorkerSet, **fields: Any) -> ObservedLeaderWorkerSet:
    """Return the observation with other fields. The manager has applied its StatefulSet."""
    names = ("leaderworkerset", "leader_workload", "revisions", "service", "groups", "known")
    found = {name: getattr(observed, name) for name in names} | fields
    if fields.get("leader_workload"):
        applied = builders.applied(found["leaderworkerset"], found["leader_workload"])
        found["known"] = structs.replace(found["known"], applied=applied)
    return ObservedLeaderWorkerSet(**found)


def reads(observed: ObservedLeaderWorkerSet) -> frozenset[Read]:
    """Return the objects that are read from the API server before the decision."""
    outlined = build_outline(observed, builders.NOW, NO_GANG, EXTENSIONS)
    return frozenset() if isinstance(outlined, Plan) else outlined.reads


def kinds(plan: Plan) -> list[type[Action]]:
    return [type(action) for action in plan.actions]


def test_new_set_gets_revision_statefulset_and_service() -> None:
    """The status waits until the StatefulSet is observed (R-REV-10, R-LSTS-1, R-LSTS-7, R-SVC-1, R-STAT-2)."""
    revision = revisions.build(LWS, key=KEY, number=1, data=revisions.build_data(LWS))
    created_note = f"Creating revision with key {KEY} for a newly created LeaderWorkerSet"
    related = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "namespace": "default",
        "name": f"web-{KEY}-1",
    }

    plan = reconcile(ObservedLeaderWorkerSet(leaderworkerset=LWS), builders.NOW)
    (held,) = plan.on_failure
    assert isinstance(held, PutStatus)
    assert held.object["status"]["conditions"][0]["type"] == "Progressing"
    assert plan == Plan(
        (
            Create(
                resource=CONTROLLER_REVISIONS,
                object=revision,
                body=revisions.encode(revision, revisions.build_data(LWS)),
                unless_own=True,
                equal=revisions.IDENTITY,
                on_success=(Event("Normal", "CreatingRevision", "Create", created_note, REGARDING, related),),
                on_failure=(
                    Event(
                        "Warning",
                        "FailedCreate",
                        "Create",
                        f"Failed to create revision web-{KEY}-1: {{error}}",
                        REGARDING,
                    ),
                ),
            ),
            Apply(
                resource=STATEFULSETS,
                object=desired(LWS),
                manager="lws",
                on_success=(
                    Event("Normal", "GroupsProgressing", "Create", "Created leader statefulset web", REGARDING),
                ),
                on_failure=(
                    Event(
                        "Warning",
                        "FailedCreate",
                        "Create",
                        "Failed to create leader statefulset web: {error}",
                        REGARDING,
                    ),
                ),
                on_contention=(
                    Event(
                        "Warning",
                        "FieldContention",
                        "Update",
                        "{error}, so leader statefulset web is updated only every 30 s",
                        REGARDING,
                    ),
                ),
            ),
            Create(
                resource=SERVICES,
                object=services.build_shared(LWS),
                unless_own=True,
                accepted=(
                    AcceptedField("spec.clusterIP", "None"),
                    *(AcceptedField("spec.selector", own, (NOT_HEADLESS,)) for own in services.pod_labels(LWS)),
                ),
                on_failure=(
                    Event(
                        "Warning",
                        "FailedCreate",
                        "Create",
                        "Failed to create headless service for error: {error}",
                        REGARDING,
                    ),
                ),
            ),
        ),
        on_failure=(held,),
    )


def test_reconcile_writes_nothing_at_rest() -> None:
    """A write that would not change the object is not sent (R-STAT-3, R-LSTS-1)."""
    assert reconcile(at_rest(), builders.NOW) == Plan()


@pytest.mark.parametrize(
    "obj", [None, builders.leaderworkerset_object(metadata={"deletionTimestamp": "2026-03-01T11:00:00Z"})]
)
def test_missing_or_terminating_set_is_not_reconciled(obj: dict[str, Any] | None) -> None:
    """A missing or terminating LeaderWorkerSet is not reconciled (contract 2.1 step 1)."""
    assert reconcile(ObservedLeaderWorkerSet(leaderworkerset=obj), builders.NOW) == Plan()


def test_terminating_leader_statefulset_is_awaited() -> None:
    """The manager waits for a terminating leader StatefulSet (R-LSTS-6)."""
    going = live(LWS) | {"metadata": live(LWS)["metadata"] | {"deletionTimestamp": "2026-03-01T11:00:00Z"}}

    plan = reconcile(ObservedLeaderWorkerSet(leaderworkerset=LWS, leader_workload=going), builders.NOW)

    assert plan == Plan(requeue_after=5.0)


def test_differs_from_upstream_statefulset_of_old_set_is_awaited() -> None:
    """A recreated LeaderWorkerSet waits until the leader StatefulSet of the deleted LeaderWorkerSet no longer exists.

    The new LeaderWorkerSet does not adopt the revision of the old StatefulSet (R-LSTS-4).
    """
    old = live(builders.leaderworkerset_object(image="app:1", metadata={"uid": "uid-of-predecessor"}))

    plan = reconcile(ObservedLeaderWorkerSet(leaderworkerset=LWS, leader_workload=old), builders.NOW)

    assert plan == Plan(requeue_after=5.0)


def test_statefulset_without_an_owner_is_adopted() -> None:
    """A StatefulSet without an owner is adopted (R-REV-10)."""
    orphan = live(LWS)
    orphan |= {"metadata": {name: field for name, field in orphan["metadata"].items() if name != "ownerReferences"}}

    actions = reconcile(ObservedLeaderWorkerSet(leaderworkerset=LWS, leader_workload=orphan), builders.NOW).actions

    assert any(isinstance(action, Apply) for action in actions)


def test_edited_template_gets_a_revision_and_a_full_partition() -> None:
    """No group is replaced in the reconcile that detects the change (R-REV-11, R-ROLL-10, R-STAT-8)."""
    edited = builders.leaderworkerset_object(image="app:2", metadata={"generation": 2})
    observed = replace(at_rest(), leaderworkerset=edited)

    record, apply, put = reconcile(observed, builders.NOW).actions

    assert isinstance(record, Create)
    assert record.on_success[0].note == f"Creating revision with key {builders.key_of(edited)} for updated LWS"
    assert isinstance(apply, Apply)
    assert apply.object == desired(edited, partition=2)
    assert apply.on_success == ()
    assert apply.on_failure[0].reason == "FailedUpdate"
    assert apply.on_failure[0].note == "Failed to update leader statefulset web: {error}"
    assert isinstance(put, PutStatus)
    true = [one["type"] for one in put.object["status"]["conditions"] if one["status"] == "True"]
    assert true == ["UpdateInProgress", "Progressing"]
    assert put.on_success[0].reason == "GroupsUpdating"
    assert put.on_success[0].note == "Rolling Upgrade is in progress, with 2 groups ready of total 2 groups"


def test_deleted_shared_service_is_recreated() -> None:
    """A deleted shared Service is recreated (R-SVC-5)."""
    plan = reconcile(replace(at_rest(), service=NO_SERVICE), builders.NOW)

    assert [action.resource for action in plan.actions if isinstance(action, Create)] == [SERVICES]


def test_groups_with_their_own_services_have_no_shared_one() -> None:
    """Groups with separate Services do not have a shared Service (R-SVC-2, R-SVC-6)."""
    obj = builders.leaderworkerset_object(spec={"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})

    assert reconcile(replace(at_rest(obj), service=NO_SERVICE), builders.NOW) == Plan()


def test_inherited_key_is_recorded_without_a_rollout() -> None:
    """The groups belong to a controller that does not use revisions (R-REV-10, R-REV-17)."""
    adopted = live(LWS)
    adopted = builders.as_applied(desired(LWS, key="legacy"), status=adopted["status"])
    observed = replace(at_rest(), leader_workload=adopted, revisions=[], groups=ready_groups(LWS, 2, key="legacy"))

    (record,) = reconcile(observed, builders.NOW).actions

    assert isinstance(record, Create)
    assert meta.labels(record.object)[labels.TEMPLATE_REVISION_HASH] == "legacy"
    note = "Creating missing revision with key legacy for existing LeaderWorkerSet"
    assert record.on_success[0].note == note


def test_status_is_written_on_the_observed_object() -> None:
    """The status write is based on the observed object (R-STAT-1, R-STAT-3, R-STAT-10)."""
    observed = replace(at_rest(), leaderworkerset=LWS)

    assert reconcile(observed, builders.NOW) == Plan(
        (
            PutStatus(
                resource=LEADERWORKERSETS,
                object=settled(LWS, observed),
                resource_version=meta.resource_version(LWS),
                if_present=True,
                on_success=(
                    Event(
                        "Normal",
                        "AllGroupsReady",
                        "Update",
                        "All replicas are ready, with 2 groups ready of total 2 groups",
                        REGARDING,
                    ),
                ),
            ),
        )
    )


def test_changed_counts_record_no_event() -> None:
    """Changed counts do not record an event (R-STAT-10)."""
    three = builders.leaderworkerset_object(replicas=3)
    before = replace(at_rest(three), leader_workload=live(three, replicas=3), groups=ready_groups(three, 1))
    observed = replace(before, leaderworkerset=settled(three, before), groups=ready_groups(three, 2))

    (put,) = reconcile(observed, builders.NOW).actions

    assert isinstance(put, PutStatus)
    assert put.object["status"]["readyReplicas"] == 2
    assert put.on_success == ()


@pytest.mark.parametrize(
    ("obj", "failure"),
    [
        (builders.leaderworkerset_object(rollout={"maxSurge": "many"}), "neither a number nor a percentage"),
        (builders.leaderworkerset_object(template={"size": "two"}), "spec.leaderWorkerTemplate.size"),
        (
            builders.leaderworkerset_object(template={"workerTemplate": {"spec": {"containers": "none"}}}),
            "spec.leaderWorkerTemplate.workerTemplate.spec.containers",
        ),
    ],
)
def test_invalid_field_is_reported_as_an_error(obj: dict[str, Any], failure: str) -> None:
    """The value causes an error instead of a panic (R-ROLL-1, Q-23)."""
    plan = reconcile(ObservedLeaderWorkerSet(leaderworkerset=obj), builders.NOW)

    told, held = plan.actions
    assert isinstance(told, Emit)
    assert isinstance(held, PutStatus)
    assert failure in told.events[0].note
    assert failure in reconcilefailure.message(held.object)
    assert plan.error is not None
    assert plan.error.startswith("LeaderWorkerSet default/web: ")
    assert failure in plan.error


def test_null_fields_count_as_absent() -> None:
    """The Go controller panics in this case (Q-23)."""
    obj = builders.leaderworkerset_object(spec={"rolloutStrategy": {"type": "RollingUpdate"}, "networkConfig": None})

    assert reconcile(ObservedLeaderWorkerSet(leaderworkerset=obj), builders.NOW).error is None


def test_invalid_leader_index_prevents_only_the_status() -> None:
    """An invalid leader index prevents only the status write (R-STAT-5)."""
    stray = groupstate.describe(builders.leader_pod(LWS, extra_labels={labels.GROUP_INDEX: "x"}), None)
    observed = replace(at_rest(), leader_workload=live(LWS, replicas=1), groups=builders.by_leader([stray]))

    plan = reconcile(observed, builders.NOW)

    assert kinds(plan) == [Apply, Emit]
    assert plan.error is not None


def test_statefulset_is_applied_once_after_a_start() -> None:
    """No state is retained. The next decision follows immediately, because no watch reports the change (R-LSTS-1)."""
    unknown = structs.replace(at_rest(), known=NO_RESULTS)

    decision = decide(unknown, builders.NOW)

    assert kinds(decision.plan) == [Apply]
    assert decision.plan.requeue_after == 0
    assert decision.source is not None
    assert at_rest().known.applied == LastApply(decision.source, Identity.from_object(unknown.leader_workload or {}))


@pytest.mark.parametrize(
    "foreign",
    [
        {"generation": 7},
        {"labels": {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: KEY, "other": "1"}},
        {"annotations": {labels.REPLICAS: "7"}},
        {"ownerReferences": []},
        {"uid": "another"},
    ],
    ids=["spec", "labels", "annotations", "owner", "another"],
)
def test_edited_statefulset_is_corrected(foreign: dict[str, Any]) -> None:
    """A manually changed StatefulSet is corrected (R-LSTS-1, Q-26)."""
    observed = at_rest()
    assert observed.leader_workload is not None
    edited = observed.leader_workload["metadata"] | foreign
    found = structs.replace(observed, leader_workload=observed.leader_workload | {"metadata": edited})

    assert Apply in kinds(reconcile(found, builders.NOW))


@pytest.mark.parametrize(
    "metadata", [{"generation": 2}, {"labels": {"team": "a"}}, {"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}}]
)
def test_edited_leaderworkerset_is_applied_once(metadata: dict[str, Any]) -> None:
    """A changed LeaderWorkerSet is applied once (R-LSTS-1)."""
    obj = builders.leaderworkerset_object(metadata=metadata)
    observed = replace(at_rest(), leaderworkerset=settled(obj, at_rest()))

    assert kinds(reconcile(observed, builders.NOW)) == [Apply]
    assert reconcile(replace(observed, leader_workload=live(obj)), builders.NOW) == Plan()


def test_objects_are_created_in_the_namespace_of_the_set() -> None:
    """All objects are in the namespace of the LeaderWorkerSet (R-ARC-10)."""
    obj = builders.leaderworkerset_object(metadata={"namespace": "elsewhere"})
    actions = reconcile(ObservedLeaderWorkerSet(leaderworkerset=obj), builders.NOW).actions

    assert [meta.namespace(one.object) for one in actions if isinstance(one, Create | Apply)] == ["elsewhere"] * 3


REFUSALS = {
    "of a new set": ObservedLeaderWorkerSet(leaderworkerset=LWS),
    "of its service": replace(at_rest(), service=NO_SERVICE),
    "of an edit": replace(
        at_rest(), leaderworkerset=builders.leaderworkerset_object(image="app:2", metadata={"generation": 2})
    ),
}


@pytest.mark.parametrize("observed", REFUSALS.values(), ids=REFUSALS)
def test_differs_from_upstream_rejected_write_updates_status(observed: ObservedLeaderWorkerSet) -> None:
    """If the API server rejects a write, the condition `Available` becomes False.

    The Go controller does not update the status (R-STAT-2, ADR 30).
    """
    (held,) = reconcile(observed, builders.NOW).on_failure
    assert isinstance(held, PutStatus)
    new = held.object["status"]
    assert new["observedGeneration"] == meta.generation(observed.leaderworkerset or {})
    holding = {one["type"] for one in new["conditions"] if one["status"] == "True"}
    assert "Progressing" in holding
    assert "Available" not in holding
    noted = replace(observed, leaderworkerset=(observed.leaderworkerset or {}) | {"status": new})
    assert reconcile(noted, builders.NOW).on_failure == ()


def test_conflicting_service_makes_a_set_unavailable() -> None:
    """The group names do not resolve (docs/adr/0030)."""
    plan = reconcile(replace(at_rest(), service=HeadlessService(is_settled=True, conflict="taken")), builders.NOW)
    (status,) = [one.object["status"] for one in plan.actions if isinstance(one, PutStatus)]
    assert {one["type"] for one in status["conditions"] if one["status"] == "True"} == {"Progressing"}


def test_orphans_of_an_earlier_set_are_adopted() -> None:
    """The LeaderWorkerSet was deleted with `--cascade=orphan`, and then recreated with the same name."""
    service = services.build_shared(LWS)
    orphans = [
        one | {"metadata": one["metadata"] | {"ownerReferences": []}} for one in (service, builders.revision(LWS))
    ]
    assert services.is_orphan(orphans[0], LWS)
    assert not services.is_orphan(orphans[0] | {"spec": {"clusterIP": "None", "selector": {"app": "theirs"}}}, LWS)
    observed = replace(at_rest(), service=HeadlessService(is_settled=True, orphan=orphans[0]), revisions=[orphans[1]])

    actions = reconcile(observed, builders.NOW).actions

    adopted = [(one.resource, one.patch["metadata"]["ownerReferences"]) for one in actions if isinstance(one, Patch)]
    owner = [meta.controller_reference(LWS)]
    assert adopted == [(CONTROLLER_REVISIONS, owner), (SERVICES, owner)]
