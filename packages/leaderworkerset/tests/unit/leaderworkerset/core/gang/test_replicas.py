"""Tests the PodGroups of replicas and roles, references to them, and errors that prevent their creation."""

from typing import Any

import pytest
from tests import builders, scheduled
from tests.scheduled import GANG, REPLICA, ROLES, WHOLE, link_of

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import Create, Delete, Emit, Event, Patch, Plan
from leaderworkerset.api import labels
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.core.admission.pod import admit_pod
from leaderworkerset.core.gang.native import POD_GROUPS
from leaderworkerset.core.policies import replacement, workloadnames
from leaderworkerset.core.policies.gang import NO_GANG
from leaderworkerset.core.policies.levels import SchedulingLevel
from leaderworkerset.core.policies.policy import DeniedError, SchedulingObjects

OBJ = scheduled.lws(REPLICA)
KEY = builders.key_of(OBJ)
WORKLOAD = scheduled.workload_of(OBJ)
NAME = meta.name(WORKLOAD)
LEADER = scheduled.leader(OBJ)
HASH = scheduled.lws(REPLICA, spec={"groupIdentity": "Hash"})
ENDS = {"deletionTimestamp": "2026-03-01T12:00:00Z"}


def plan_for(obj: JSONObject = OBJ, leader: JSONObject = LEADER, *objects: JSONObject, **fields: Any) -> Plan:
    known = objects or (scheduled.workload_of(obj),)
    group = {"pods": (leader,), "revisions": [builders.revision(obj)]} | fields
    return reconcile(
        builders.live_group(leader=leader, obj=obj, scheduling=SchedulingObjects(objects=known), **group), GANG
    )


def created(plan: Plan) -> list[JSONObject]:
    return [one.object for one in plan.actions if isinstance(one, Create) and one.resource == POD_GROUPS]


def opened(leader: JSONObject) -> JSONObject:
    """Return a leader without a closed gate."""
    return leader | {"spec": leader["spec"] | {"schedulingGates": []}}


def hash_leader(**fields: Any) -> JSONObject:
    own = {labels.WORKLOAD_AWARE_SCHEDULING: "replica", labels.WORKLOAD_NAME: meta.name(scheduled.workload_of(HASH))}
    return admit_pod(builders.hash_leader(HASH, gated=True, annotations=own, **fields), GANG, "r1")


def test_ordinal_leader_gets_an_incarnation_and_a_gate() -> None:
    """Each admission results in a different incarnation.

    A second admission of one pod changes nothing (N-ADM-8, N-ADM-9, N-AT-12).
    """
    first, second = (scheduled.leader(OBJ, request=request) for request in ("r1", "r2"))
    base = meta.annotations(first)[labels.WORKLOAD_NAME]

    assert workloadnames.pod_group_prefix(base, NAME) == base != NAME
    assert link_of(first) == f"{base}-0-{KEY}" != link_of(second)
    assert replacement.is_gated(first)
    assert admit_pod(first, GANG, "r9") == first


@pytest.mark.parametrize(
    ("obj", "suffix"), [(scheduled.lws(WHOLE), "lws"), (HASH, f"{'a' * 40}-{KEY}")], ids=["whole", "Hash"]
)
def test_other_leaders_get_no_incarnation(obj: JSONObject, suffix: str) -> None:
    """The PodGroup of these leaders either is shared or has a random name (N-ADM-9, N-K8S-5)."""
    leader, name = hash_leader() if obj is HASH else scheduled.leader(obj), meta.name(scheduled.workload_of(obj))

    assert meta.annotations(leader)[labels.WORKLOAD_NAME] == name
    assert replacement.is_gated(leader) == (obj is HASH)
    assert link_of(leader) == f"{name}-{suffix}"


@pytest.mark.parametrize(("scheduling", "names"), [(REPLICA, ["", ""]), (ROLES, ["leader-", "worker-"])])
def test_workers_are_linked_like_their_leader(scheduling: JSONObject, names: list[str]) -> None:
    """The worker template contains the level and the incarnation (N-ADM-8, N-K8S-4, N-K8S-12)."""
    obj = scheduled.lws(scheduling)
    leader = scheduled.leader(obj)
    base = meta.annotations(leader)[labels.WORKLOAD_NAME]
    actions = plan_for(obj, opened(leader)).actions
    (workers,) = (one.object for one in actions if isinstance(one, Create) and one.resource == STATEFULSETS)

    template = workers["spec"]["template"]
    pod = template | {"metadata": template["metadata"] | {"name": "web-0-1", "namespace": "default"}}
    worker = admit_pod(pod, GANG, "w")

    assert [link_of(leader), link_of(worker)] == [f"{base}-0-{role}{KEY}" for role in names]
    assert not replacement.is_gated(worker)


def test_pod_of_an_earlier_version_names_no_workload() -> None:
    """The PodGroup has the name of the LeaderWorkerSet, and the `replicas` value of that version (N-ADM-8)."""
    annotations = {labels.SIZE: "2", labels.WORKLOAD_AWARE_SCHEDULING: "true"}
    worker = builders.worker_pod(LEADER)
    worker = worker | {"metadata": worker["metadata"] | {"annotations": annotations}}

    assert link_of(admit_pod(worker, GANG, "r1")) == f"web-0-{KEY}"
    assert link_of(admit_pod(worker, NO_GANG, "r1")) == ""


def test_unknown_level_is_rejected() -> None:
    """An unknown level is rejected (N-ADM-8)."""
    annotations = {labels.SIZE: "2", labels.WORKLOAD_AWARE_SCHEDULING: "cluster"}

    with pytest.raises(DeniedError, match='unsupported workload-aware scheduling mode "cluster"'):
        admit_pod(builders.leader_pod(OBJ, annotations=annotations), GANG, "r1")


@pytest.mark.parametrize(("scheduling", "counts"), [(REPLICA, {"": 3}), (ROLES, {"leader": 1, "worker": 2})])
def test_gated_group_creates_its_pod_groups(scheduling: JSONObject, counts: dict[str, int]) -> None:
    """The PodGroups are created before the gate is removed, and before the workers.

    Rules N-K8S-8a, N-K8S-11, N-HASH-22, N-GATE-12.
    """
    obj = scheduled.lws(scheduling, size=3)
    workload, leader = scheduled.workload_of(obj), scheduled.leader(obj)
    base = meta.annotations(leader)[labels.WORKLOAD_NAME]

    plan = plan_for(obj, leader)

    made = {meta.labels(one).get(labels.ROLE, ""): one for one in created(plan)}
    assert {role: one["spec"]["schedulingPolicy"]["gang"]["minCount"] for role, one in made.items()} == counts
    for role, one in made.items():
        assert meta.name(one) == f"{base}-0-{f'{role}-' if role else ''}{builders.key_of(obj)}"
        assert meta.labels(one) == {
            labels.NAME: "web",
            labels.SCHEDULING_LEVEL: "role" if role else "replica",
            labels.GROUP_INDEX: "0",
            labels.TEMPLATE_REVISION_HASH: builders.key_of(obj),
        } | ({labels.ROLE: role} if role else {})
        owners = [(owner["kind"], owner.get("controller", False)) for owner in one["metadata"]["ownerReferences"]]
        assert owners == [("LeaderWorkerSet", True), ("Workload", False)]
        reference = {"workloadName": meta.name(workload), "templateName": role or "replica"}
        assert one["spec"]["workloadRef"] == reference
    assert [type(action) for action in plan.actions] == [*[Create] * len(counts), Patch]


def test_existing_pod_groups_are_not_changed() -> None:
    (made,) = created(plan_for())

    assert created(plan_for(OBJ, LEADER, WORKLOAD, scheduled.stored(made))) == []


def test_set_level_and_unlinked_leaders_create_no_pod_groups() -> None:
    """A leader from before the introduction of the field is not changed (N-K8S-11)."""
    whole = scheduled.lws(WHOLE)
    unlinked = builders.leader_pod(OBJ, ready=False)

    assert created(plan_for(whole, scheduled.leader(whole))) == []
    assert created(plan_for(OBJ, unlinked)) == []


def test_group_of_an_older_revision_keeps_its_size() -> None:
    """The group's PodGroup is created, and compared with its own revision (N-AT-25, N-K8S-8)."""
    old, new = (scheduled.lws(REPLICA, size=size) for size in (2, 4))
    leader = scheduled.leader(old)
    revisions = [builders.revision(old), builders.revision(new, number=2)]

    (made,) = created(plan_for(new, leader, revisions=revisions))

    assert made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    kept = made | {"spec": made["spec"] | {"schedulingPolicy": {"gang": {"minCount": 4}}}}
    plan = plan_for(new, leader, scheduled.workload_of(new), scheduled.stored(kept), revisions=revisions)
    assert (created(plan), plan.error) == ([], None)


def test_deleted_pod_group_is_recreated_for_its_revision() -> None:
    """The new PodGroup has the revision of the leader, even below a partition (N-AT-11)."""
    old = scheduled.lws(REPLICA)
    new = scheduled.lws(REPLICA, image="app:2", rollout={"partition": 1})
    leader = opened(scheduled.leader(old))
    revisions = [builders.revision(old), builders.revision(new, number=2)]

    (made,) = created(plan_for(new, leader, revisions=revisions))

    assert meta.name(made) == link_of(leader)
    assert meta.labels(made)[labels.TEMPLATE_REVISION_HASH] == builders.key_of(old)


def other(obj: JSONObject) -> JSONObject:
    return scheduled.stored(obj, ownerReferences=[meta.controller_reference(OBJ) | {"uid": "other"}])


def without(label: str) -> JSONObject:
    own = {key: value for key, value in meta.labels(LEADER).items() if key != label}
    return LEADER | {"metadata": LEADER["metadata"] | {"labels": own}}


@pytest.mark.parametrize(
    ("leader", "objects", "error"),
    [
        (LEADER, [scheduled.stored(WORKLOAD, name="x")], f"Workload default/{NAME} has not been created yet"),
        (
            LEADER,
            [other(WORKLOAD)],
            f"Workload default/{NAME} is not controlled by the expected LeaderWorkerSet UID",
        ),
        (
            without(labels.GROUP_INDEX),
            [WORKLOAD],
            f"leader pod default/web-0 has no {labels.GROUP_INDEX} label",
        ),
        (
            without(labels.TEMPLATE_REVISION_HASH),
            [WORKLOAD],
            f"leader pod default/web-0 has no {labels.TEMPLATE_REVISION_HASH} label",
        ),
    ],
)
def test_missing_prerequisite_is_an_error(leader: JSONObject, objects: list[JSONObject], error: str) -> None:
    """A failed creation is retried (N-K8S-9)."""
    plan = plan_for(OBJ, leader, *objects)

    assert plan == Plan(error=f"pod default/web-0: {error}")


def test_immutable_drift_of_a_pod_group_is_an_error() -> None:
    """Drift in an immutable PodGroup field causes an error (N-K8S-9)."""
    (made,) = created(plan_for())
    drifted = scheduled.stored(made | {"spec": made["spec"] | {"disruptionMode": {"all": {}}}})

    error = plan_for(OBJ, LEADER, WORKLOAD, drifted).error

    assert (
        error == f"pod default/web-0: PodGroup default/{meta.name(made)} has immutable scheduling configuration drift"
    )


def test_pod_group_of_a_different_owner_is_reported_and_retried() -> None:
    """A PodGroup with another owner is reported, and the reconcile is retried (N-K8S-14)."""
    (made,) = created(plan_for())

    plan = plan_for(OBJ, LEADER, WORKLOAD, other(made))

    (emit,) = plan.actions
    assert isinstance(emit, Emit)
    (event,) = emit.events
    assert (event.type, event.reason, event.action) == ("Warning", "UnexpectedPodGroupOwner", "Create")
    assert (event.regarding["kind"], event.regarding["name"]) == ("Pod", "web-0")
    assert plan.requeue_after is not None


def deleted(plan: Plan) -> list[str]:
    return [one.key.name for one in plan.actions if isinstance(one, Delete) and one.resource == PODS]


@pytest.mark.parametrize("leader", [LEADER, opened(LEADER)], ids=["gated", "open"])
def test_group_without_workers_is_recreated_with_its_pod_group(leader: JSONObject) -> None:
    """Kubernetes does not delete a PodGroup that a pod refers to (N-117-2), so the wait would never finish."""
    (made,) = created(plan_for())

    assert deleted(plan_for(OBJ, leader, WORKLOAD, scheduled.stored(made, **ENDS))) == ["web-0"]
    ending = leader | {"metadata": leader["metadata"] | ENDS}
    assert deleted(plan_for(OBJ, ending, WORKLOAD, scheduled.stored(made, **ENDS))) == []


def test_group_with_workers_keeps_a_terminating_pod_group() -> None:
    leader = opened(LEADER)
    (made,) = created(plan_for())
    workers = builders.worker_statefulset(leader)

    assert plan_for(OBJ, leader, WORKLOAD, scheduled.stored(made, **ENDS), statefulsets=[workers]) == Plan()
    alone = scheduled.lws(REPLICA, spec={"leaderWorkerTemplate": OBJ["spec"]["leaderWorkerTemplate"] | {"size": 1}})
    (made,) = created(plan_for(alone, scheduled.leader(alone)))
    one = opened(scheduled.leader(alone))
    assert deleted(plan_for(alone, one, scheduled.workload_of(alone), scheduled.stored(made, **ENDS))) == []


def test_rejected_pod_group_is_reported() -> None:
    """The plan stops at this action, so the gate remains closed (N-K8S-10, R-GANG-7).

    A PodGroup that already belongs to the group is not an error.
    """
    create = next(one for one in plan_for().actions if isinstance(one, Create))

    assert create.unless_own
    assert [(event.reason, event.note) for event in create.on_failure] == [("PodGroupCreateFailed", "{error}")]


def linked(worker: JSONObject, name: str) -> JSONObject:
    return worker | {"spec": worker["spec"] | {"schedulingGroup": {"podGroupName": name}}}


@pytest.mark.parametrize(
    ("link", "node", "is_recreated"),
    [("theirs", "", True), ("", "", True), ("theirs", "n1", False), ("own", "", False)],
)
def test_group_with_workers_in_another_pod_group_is_recreated(link: str, node: str, is_recreated: bool) -> None:
    """A scheduled worker prevents the change (N-K8S-17)."""
    leader = opened(LEADER)
    (made,) = created(plan_for(OBJ, leader))
    worker = linked(builders.worker_pod(leader, node=node), link_of(leader) if link == "own" else link)
    workers = builders.worker_statefulset(leader, ready=False)

    plan = plan_for(OBJ, leader, WORKLOAD, scheduled.stored(made), pods=(leader, worker), statefulsets=[workers])

    deletions = [one for one in plan.actions if isinstance(one, Delete)]
    assert [(one.resource, one.key.name, one.propagation) for one in deletions] == (
        [(PODS, "web-0", "Foreground")] if is_recreated else []
    )
    assert all(event.reason == "RecreateGroup" for one in deletions for event in one.on_success)


@pytest.mark.parametrize("is_owner_earlier", [False, True])
def test_workers_of_an_earlier_leader_do_not_delete_the_leader(*, is_owner_earlier: bool) -> None:
    leader, earlier = opened(LEADER), builders.leader_pod(OBJ, uid="earlier")
    workers = builders.worker_statefulset(earlier if is_owner_earlier else leader)
    worker = linked(builders.worker_pod(earlier, uid="w"), "theirs")

    plan = plan_for(OBJ, leader, pods=(leader, worker), statefulsets=[workers])

    assert not any(isinstance(one, Delete) for one in plan.actions)


def test_leader_of_an_earlier_set_gets_no_pod_group() -> None:
    """The leader's PodGroup refers to another Workload.

    A new PodGroup, which no pod names, would be deleted as unused again and again.
    """
    earlier = scheduled.lws(REPLICA, metadata={"uid": "earlier"})

    plan = plan_for(OBJ, opened(scheduled.leader(earlier)))

    assert [one.resource for one in plan.actions if isinstance(one, Create)] == []


def events(plan: Plan) -> list[Event]:
    return [event for one in plan.actions if isinstance(one, Patch) for event in one.on_success]


def test_ordinal_leader_waits_for_the_previous_group() -> None:
    """The wait is reported once, and other gates are not removed (N-GATE-10, N-AT-12)."""
    gates = [{"name": "other"}, *LEADER["spec"]["schedulingGates"]]
    leader = LEADER | {"spec": LEADER["spec"] | {"schedulingGates": gates}}
    earlier = builders.worker_pod(builders.leader_pod(OBJ, uid="earlier"), uid="w", deleting=True)

    held = plan_for(OBJ, leader, pods=(leader, earlier))

    (deferred,) = events(held)
    text = "Leader pod web-0 waits for previous group 0 pods to be removed before scheduling"
    assert (deferred.reason, deferred.note) == ("GroupReplacementDeferred", text)
    waiting = leader | {
        "metadata": leader["metadata"] | {"annotations": {labels.REPLACES: "web-0"} | meta.annotations(leader)}
    }
    assert events(plan_for(OBJ, waiting, pods=(waiting, earlier))) == []
    *_, patch = plan_for(OBJ, waiting).actions
    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"uid": meta.uid(leader)}, "spec": {"schedulingGates": [{"name": "other"}]}}
    assert [(event.reason, event.note) for event in patch.on_success] == [
        ("GroupReplacementAdmitted", "Leader pod web-0 admitted for scheduling")
    ]


def test_gate_of_a_random_key_is_not_opened_for_one_group() -> None:
    """All gates of a LeaderWorkerSet are evaluated together (docs/adr/0017)."""
    leader = hash_leader()

    assert [type(one) for one in plan_for(HASH, leader).actions] == [Create]


def test_group_of_one_pod_has_a_gang_pod_group() -> None:
    """A group with one pod also has a gang PodGroup (R-GANG-3, N-GATE-12)."""
    obj = scheduled.lws(REPLICA, size=1)

    (made,) = created(plan_for(obj, scheduled.leader(obj)))

    assert made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}
    assert meta.labels(made)[labels.SCHEDULING_LEVEL] == SchedulingLevel.REPLICA
