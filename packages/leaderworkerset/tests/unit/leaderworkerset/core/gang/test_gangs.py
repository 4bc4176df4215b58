"""Tests the selection of a gang scheduler when the leader is admitted, which workers and controllers use."""

from collections.abc import Collection, Mapping

import pytest
from msgspec.structs import replace
from tests import builders, scheduled
from tests.gangdefinitions import kind_of

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Create, Delete
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.capabilities import deciding
from leaderworkerset.core.admission.pod import admit_pod
from leaderworkerset.core.gang.gangs import AUTO, DETECTABLE, PROVIDERS, Gangs
from leaderworkerset.core.gang.native import ALPHA_POD_GROUPS, ALPHA_WORKLOADS, POD_GROUPS, WORKLOADS
from leaderworkerset.core.gang.volcano import GROUP_NAME
from leaderworkerset.core.policies.gang import CHOICE, NO_GANG, UNSUPPORTED, GangGroup, GangSet
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision, SchedulingObjects

LWS = builders.leaderworkerset_object()
REVISION = builders.revision(LWS)
KEY = builders.key_of(LWS)


def created(name: str = "web-0", choice: str = "", **spec: object) -> JSONObject:
    """Return a leader pod as the StatefulSet controller creates it."""
    annotations = {labels.SIZE: "2"} | ({labels.GANG_SCHEDULER: choice} if choice else {})
    leader = builders.leader_pod(LWS, annotations=annotations)
    return leader | {"metadata": leader["metadata"] | {"name": name}, "spec": leader["spec"] | spec}


def worker_of(leader: JSONObject, gang: Gangs) -> JSONObject:
    """Return a worker that the controllers create for this leader."""
    plan = deciding.reconcile_group(
        builders.live_group(leader=leader, obj=LWS, pods=(leader,), revisions=(REVISION,)),
        gang,
    )
    template = plan.actions[-1].object["spec"]["template"]  # type: ignore[union-attr]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    metadata = {"name": f"{meta.name(leader)}-1", "namespace": "default"}
    return admit_pod(pod | {"metadata": template["metadata"] | metadata}, gang, "worker's")


def link_of(pod: JSONObject) -> tuple[str | None, str | None, str | None]:
    """Return the links of a pod to the groups of Volcano, coscheduling and the native scheduler."""
    native = meta.spec(pod).get("schedulingGroup") or {}
    return (
        meta.annotations(pod).get(GROUP_NAME),
        meta.labels(pod).get("scheduling.x-k8s.io/pod-group"),
        native.get("podGroupName"),
    )


def test_volcano_links_equal_those_of_the_go_controller() -> None:
    """Volcano links equal the links of the Go controller (R-GANG-2, R-KQ-113)."""
    gang = Gangs(default="volcano")

    leader = admit_pod(created(), gang, "r1")
    worker = worker_of(leader, gang)

    assert link_of(leader) == link_of(worker) == (f"web-0-{KEY}", None, None)
    assert not {labels.GANG_SCHEDULER, labels.GANG_GROUP} & (meta.annotations(leader) | meta.annotations(worker)).keys()


def test_volcano_link_replaces_any_other() -> None:
    """The link replaces an existing link (R-GANG-2)."""
    pod = created()
    pod["metadata"]["annotations"][GROUP_NAME] = "users"

    assert link_of(admit_pod(pod, Gangs(default="volcano"), "r1"))[0] == f"web-0-{KEY}"


@pytest.mark.parametrize("provider", ["coscheduling", "native"])
def test_each_leader_starts_a_group_that_its_workers_join(provider: str) -> None:
    """A replacement group must not join a terminating PodGroup (R-KQ-147)."""
    gang = Gangs(default=provider)

    first, second = (admit_pod(created(), gang, request) for request in ("r1", "r2"))

    (name,) = filter(None, link_of(first))
    assert name.startswith("web-0-")
    assert name not in link_of(second)
    assert meta.annotations(first)[labels.GANG_GROUP] == name
    assert link_of(worker_of(first, gang)) == link_of(first)


def test_leader_without_a_name_uses_its_host_name() -> None:
    pod = created()
    random = {
        "generateName": "web-7d9f8b6c4-",
        "annotations": pod["metadata"]["annotations"] | {labels.GROUP_IDENTITY: "Hash"},
    }
    nameless = {key: value for key, value in pod["metadata"].items() if key != "name"} | random

    leader = admit_pod(pod | {"metadata": nameless}, Gangs(default="coscheduling"), "r1")

    assert meta.annotations(leader)[labels.GANG_GROUP].startswith(f"{leader['spec']['hostname']}-")
    assert leader["spec"]["hostname"].startswith("web-")


def test_group_name_fits_into_a_label() -> None:
    gang = Gangs(default="coscheduling")

    _, name, _ = link_of(admit_pod(created("w" * 51 + "-x-0"), gang, "r1"))

    assert name is not None
    assert len(name) <= 63
    assert "--" not in name


@pytest.mark.parametrize(
    ("served", "scheduler", "expected"),
    [
        (["volcano", "native", "coscheduling"], "", "native"),
        (["volcano", "native", "coscheduling"], "volcano", "volcano"),
        (["volcano", "coscheduling"], "", "coscheduling"),
        (["native", "coscheduling"], "own-scheduler", "coscheduling"),
        (["volcano"], "", ""),
        ([], "volcano", ""),
    ],
)
def test_auto_selects_the_first_suitable_scheduler(served: Collection[str], scheduler: str, expected: str) -> None:
    gang = Gangs(default=AUTO, served=served)
    pod = created(**({"schedulerName": scheduler} if scheduler else {}))

    leader = admit_pod(pod, gang, "r1")

    assert meta.annotations(leader).get(labels.GANG_SCHEDULER, "") == expected
    assert any(link_of(leader)) == bool(expected)


def test_workers_use_the_scheduler_of_their_leader() -> None:
    """A CRD that is installed later does not affect existing groups."""
    before, since = Gangs(default=AUTO), Gangs(default=AUTO, served=list(PROVIDERS))

    alone = admit_pod(created(), before, "r1")
    marked = admit_pod(created(), since, "r2")

    assert not any(link_of(worker_of(alone, since)))
    assert link_of(worker_of(marked, before)) == link_of(marked)


@pytest.mark.parametrize(("choice", "index"), [("volcano", 0), ("coscheduling", 1), ("native", 2), ("none", None)])
def test_leaderworkerset_can_select_a_scheduler(choice: str, index: int | None) -> None:
    gang = Gangs(default=AUTO, served=["native"])

    leader = admit_pod(created(choice=choice), gang, "r1")

    assert [i for i, name in enumerate(link_of(leader)) if name] == ([] if index is None else [index])
    assert meta.annotations(leader)[labels.GANG_SCHEDULER] == choice


def annotated(choice: str) -> JSONObject:
    return builders.leaderworkerset_object(metadata={"annotations": {labels.GANG_SCHEDULER: choice}})


@pytest.mark.parametrize(
    ("default", "choice", "refusal"),
    [
        (AUTO, "native", ""),
        ("volcano", "none", ""),
        ("volcano", "volcano", ""),
        ("volcano", "native", 'supported values: "none", "volcano"'),
        (AUTO, "slurm", 'supported values: "none", "volcano", "native", "coscheduling"'),
        (AUTO, "auto", "supported values"),
    ],
)
def test_unserved_scheduler_is_rejected(default: str, choice: str, refusal: str) -> None:
    errors = Gangs(default=default).errors(leaderworkerset.decode(annotated(choice)), None)

    assert len(errors) == bool(refusal)
    assert all(refusal in str(error) and "gang-scheduler" in error.path for error in errors)


def test_scheduler_choice_is_immutable() -> None:
    """Pods with different schedulers in one group would wait for each other (R-KQ-148)."""
    old, new = (leaderworkerset.decode(annotated(choice)) for choice in ("volcano", "native"))

    (error,) = Gangs(default=AUTO).errors(new, old)

    assert "cannot be changed" in str(error)
    assert Gangs(default=AUTO).errors(old, old) == []


def test_stored_scheduler_name_does_not_block_updates() -> None:
    gang = Gangs(default="native")
    stored, edited, worse = (
        leaderworkerset.decode(builders.leaderworkerset_object(replicas=replicas, spec={"startupPolicy": policy}))
        for replicas, policy in ((2, "LeaderReady"), (3, "LeaderReady"), (2, "LeaderCreated"))
    )

    assert gang.errors(edited, stored) == []
    assert len(gang.errors(stored, worse)) == 1
    assert len(gang.errors(stored, None)) == 1


def test_volcano_uses_its_own_pod_groups_for_scheduling() -> None:
    """The leader owns its objects, so that they are deleted together with it (N-K8S-19)."""
    gang, obj = Gangs(default="volcano", is_enabled=True), scheduled.lws(scheduled.REPLICA)
    leader = admit_pod(scheduled.leader(obj), gang, "r1")
    live = LiveGroup(obj=obj, leader=leader, now=builders.NOW)

    (create,) = gang.decide(GangGroup(live, leaderworkerset.decode(obj))).actions

    assert isinstance(create, Create)
    assert meta.name(create.object) == link_of(leader)[0]
    assert meta.controller_of(create.object) == meta.controller_reference(leader)


@pytest.mark.parametrize(
    ("default", "follower"),
    [("volcano", "volcano"), ("kubernetes", "kubernetes"), ("native", "kubernetes"), (AUTO, "kubernetes")],
)
def test_scheduling_is_supported_by_its_providers_only(default: str, follower: str) -> None:
    """`kubernetes` does not affect other LeaderWorkerSets (N-K8S-1, N-K8S-2)."""
    gang = Gangs(default=default, is_enabled=True)

    assert gang.support.provider == follower
    assert gang.support.is_enabled
    assert (gang.prepare(GangSet(obj={}, lws=leaderworkerset.decode(LWS), now=builders.NOW))) == UNSUPPORTED
    if default == "kubernetes":
        assert admit_pod(created(), gang, "r1") == admit_pod(created(), NO_GANG, "r1")


def decide(gang: Gangs, leader: JSONObject, *known: JSONObject, kinds: Collection[Resource] = ()) -> PolicyDecision:
    lws = leaderworkerset.decode(LWS)
    live = LiveGroup(obj=LWS, leader=leader, now=builders.NOW, scheduling=SchedulingObjects(objects=known, kinds=kinds))
    return gang.decide(GangGroup(live, lws))


def objects_of(decision: PolicyDecision) -> list[str]:
    return [f"{one.resource.kind} {meta.name(one.object)}" for one in decision.actions if isinstance(one, Create)]


def as_seen(obj: JSONObject, owner: JSONObject | None = None, **metadata: str) -> JSONObject:
    references = {} if owner is None else {"ownerReferences": [meta.controller_reference(owner)]}
    return obj | {"metadata": obj["metadata"] | references | metadata}


def created_by(decision: PolicyDecision) -> list[JSONObject]:
    return [one.object for one in decision.actions if isinstance(one, Create)]


@pytest.mark.parametrize("provider", list(DETECTABLE))
def test_gang_objects_are_created_once(provider: str) -> None:
    """Gang objects are created only once (R-GANG-3)."""
    gang = Gangs(default=provider)
    leader = admit_pod(created(), gang, "r1")
    name = next(filter(None, link_of(leader)))
    shared = ["Workload web-" + KEY + "-2"] if provider == "native" else []

    first = decide(gang, leader)

    assert objects_of(first) == [*shared, f"PodGroup {name}"]
    assert decide(gang, leader, *created_by(first)) == PolicyDecision()
    assert objects_of(decide(gang, leader, *created_by(first)[:-1])) == [f"PodGroup {name}"]


@pytest.mark.parametrize(
    ("served", "version"),
    [([POD_GROUPS, WORKLOADS], "v1beta1"), ([ALPHA_POD_GROUPS, ALPHA_WORKLOADS], "v1alpha2"), ([], "v1beta1")],
    ids=["Kubernetes 1.37", "Kubernetes 1.36", "neither"],
)
def test_native_objects_have_the_served_version(served: list[Resource], version: str) -> None:
    """If no version is served, the newest version is requested, and the rejection is reported (N-117-5)."""
    gang = Gangs(default="native")
    leader = admit_pod(created(), gang, "r1")

    made = created_by(decide(gang, leader, kinds=served))

    assert {one["apiVersion"] for one in made} == {f"scheduling.k8s.io/{version}"}
    assert decide(gang, leader, *made, kinds=served) == PolicyDecision()


def test_object_of_an_earlier_leader_is_deleted_first() -> None:
    """The names of Volcano PodGroups are reused. The garbage collector would delete the object with its leader.

    Rule R-GANG-6.
    """
    gang = Gangs(default="volcano")
    leader = admit_pod(created(), gang, "r1")
    (obj,) = created_by(decide(gang, leader))
    older = as_seen(obj, builders.leader_pod(LWS, uid="older"), uid="of-older")

    decision = decide(gang, leader, older)

    assert decision.actions == (
        Delete(resource=kind_of(PROVIDERS["volcano"]), key=meta.key(older), uid=UID("of-older")),
    )
    assert decision.delay_reason
    ending = decide(gang, leader, as_seen(older, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert replace(ending, delay_reason="") == PolicyDecision()
    assert ending.delay_reason


def test_leader_without_a_mark_has_no_group() -> None:
    """The leader was created without gang scheduling, or before it was configured."""
    assert decide(Gangs(default="native"), created()) == PolicyDecision()
    assert decide(Gangs(default="volcano"), created()) == PolicyDecision()
    assert decide(Gangs(default="volcano"), created(choice="none")) == PolicyDecision()


def test_shared_objects_of_older_revisions_are_deleted() -> None:
    def workload(name: str, revision: str, **metadata: str) -> JSONObject:
        own: Mapping[str, object] = {"name": name, "labels": {labels.TEMPLATE_REVISION_HASH: revision}, "uid": name}
        return {"apiVersion": WORKLOADS.api_version, "kind": "Workload", "metadata": {**own, **metadata}}

    observed = [
        workload("current", "a"),
        workload("old", "b"),
        workload("ending", "b", deletionTimestamp="2026-01-01T00:00:00Z"),
        workload("group", "b") | {"kind": "PodGroup"},
    ]

    observed.append(workload("alpha", "b") | {"apiVersion": ALPHA_WORKLOADS.api_version})

    deleted = Gangs(default="native").delete_unused(observed, {"a"})

    assert [(one.resource, one.key.name, one.uid) for one in deleted] == [
        (WORKLOADS, "old", "old"),
        (ALPHA_WORKLOADS, "alpha", "alpha"),
    ]
    assert Gangs(default="volcano").delete_unused(observed, {"a"}) == []


def test_choice_uses_kinds_of_its_provider_and_auto_all_kinds() -> None:
    assert Gangs(default="native").resources == list(PROVIDERS["native"].resources)
    assert Gangs(default="volcano").resources == [kind_of(PROVIDERS["volcano"])]
    assert Gangs(default=AUTO).resources == [kind for one in DETECTABLE.values() for kind in one.resources]
    assert WORKLOADS in Gangs(default=AUTO).resources
    assert Gangs(default="built-in").resources == []


def test_built_in_gate_is_selected_by_name_only() -> None:
    """`auto` does not select the gate controller, because it watches all pods in the cluster."""
    auto, built_in = Gangs(default=AUTO, served=list(PROVIDERS)), Gangs(default="built-in")
    chosen = builders.leaderworkerset_object(metadata={"annotations": {labels.GANG_SCHEDULER: "built-in"}})

    assert (auto.uses_gate, built_in.uses_gate, NO_GANG.uses_gate) == (False, True, False)
    assert [error.path for error in auto.errors(leaderworkerset.decode(chosen), None)] == [CHOICE]
    assert built_in.errors(leaderworkerset.decode(chosen), None) == []


def test_built_in_gate_is_added_to_leaders_and_workers() -> None:
    gang = Gangs(default="built-in")

    leader = admit_pod(created(schedulingGates=[{"name": "users"}]), gang, "r1")
    worker = worker_of(leader, gang)

    assert leader["spec"]["schedulingGates"] == [{"name": "users"}, {"name": labels.GANG_GATE}]
    assert worker["spec"]["schedulingGates"] == [{"name": labels.GANG_GATE}]
    assert meta.annotations(leader)[labels.GANG_GROUP] == meta.annotations(worker)[labels.GANG_GROUP]
    assert decide(gang, leader) == PolicyDecision()


def test_gate_is_added_once_and_never_to_single_pods() -> None:
    gang = Gangs(default="built-in")
    gate = [{"name": labels.GANG_GATE}]
    alone = created()
    alone["metadata"]["annotations"][labels.SIZE] = "1"

    assert admit_pod(created(schedulingGates=gate), gang, "r1")["spec"]["schedulingGates"] == gate
    assert "schedulingGates" not in admit_pod(alone, gang, "r1")["spec"]
