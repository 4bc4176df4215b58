"""Tests that caches contain exactly the fields of foreign objects that the controllers read."""

import msgspec
import pytest
from testkit import virtualtime
from tests import builders, decisions, kept, scheduled
from tests.kept import Reads, TrackedObject, UndeclaredReadError, assert_declared, checked
from tests.unit.leaderworkerset.capabilities.inplace import test_inplacesteps
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

from kuberuntime.cache.projection import Path, Projection, Values, decode, parse
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Apply, Delete, Emit, PutStatus
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import deciding
from leaderworkerset.capabilities.inplace.inplacesteps import InPlaceStep
from leaderworkerset.controllers import cachedfields as declared
from leaderworkerset.core.gang.gangs import Gangs
from leaderworkerset.core.gang.volcano import GROUP_NAME
from leaderworkerset.core.leaderworkerset import deploymentleaders
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.policies.policy import LiveGroup, SchedulingObjects
from leaderworkerset.core.restarts import missingworkers

pytestmark = pytest.mark.slow

TPU = {"limits": {"google.com/tpu": "4"}}
OWN_SERVICES = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}


@pytest.fixture(name="reads", scope="module")
def _reads() -> list[Reads]:
    """Make caches store all fields for the duration of the `with` block, and record all fields that are read."""
    reads: list[Reads] = []

    def track(projection: Projection, content: bytes | msgspec.Raw) -> JSONObject:
        obj = decode(content)
        # the manager writes its status, and therefore reads the complete object
        if projection is declared.LEADERWORKERSET:
            return obj
        reads.append(Reads(obj, projection))
        return TrackedObject(obj, (), reads[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Projection, "decode", track)
        patch.setattr(Values, "deduplicate", lambda _values, obj, _last: obj)
        run_all()
    return reads


async def live(cluster: NodelessCluster) -> None:
    """Create, place, fail, update, scale and delete with all settings that increase the fields that are read."""
    async with cluster.managed():
        await cluster.live_with_random_keys()
        await cluster.exhaust_and_recover()
        await cluster.end_together()
        await cluster.come_back()
        await cluster.create(placed())
        await cluster.bring_up(builders.leaderworkerset_object(spec=OWN_SERVICES))
        await cluster.bind("placed-0", "node")
        await cluster.settle()
        assert len(await cluster.uids()) == 6
        await cluster.fail("web-0-1")
        await cluster.settle()
        await cluster.delete("web-1-1", PODS)
        await cluster.settle()
        await cluster.orphan_leaders()
        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
        await cluster.settle()
        await cluster.edit(replicas=1)
        await cluster.settle()
        await cluster.client.delete(LEADERWORKERSETS, ObjectKey(builders.NAMESPACE, "web"))
        await cluster.settle()
        assert sorted(await cluster.uids(PODS)) == ["placed-0", "placed-0-1"]


def placed() -> JSONObject:
    """Return a LeaderWorkerSet that requests TPUs and an exclusive rack for its group."""
    pods = builders.pod_template()
    pods["spec"]["containers"][0]["resources"] = TPU
    pods["spec"]["initContainers"] = [{"name": "init", "image": "app:1", "resources": TPU}]
    metadata = {"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}}
    return builders.leaderworkerset_object("placed", replicas=1, metadata=metadata, template={"workerTemplate": pods})


def decide_the_rest() -> None:
    """Run the decisions that the cluster of these tests does not trigger."""
    for step in InPlaceStep:
        checked(deciding.reconcile_group)(test_inplacesteps.WALK[step])
    checked(deciding.reconcile_group)(test_inplacesteps.taken_back())
    lws = builders.leaderworkerset_object()
    confused = builders.leader_pod(lws, annotations={labels.LEADER_NAME: "x"})
    checked(deciding.reconcile_group)(LiveGroup(now=builders.NOW, leader=confused, obj=lws))
    for status in ENDS:
        decide_failure(lws, builders.worker_pod(builders.leader_pod(lws), deleting=True, node="n1"), status)
    checked(missingworkers.deleted_workers)(
        missingworkers.CompletionTime("2026-03-01T12:00:00Z", ""),
        builders.worker_statefulset(confused),
        [builders.worker_pod(confused)],
    )
    checked(missingworkers.completion_times)(
        missingworkers.LastStatus(groups=0, ready=1, complete_since="", written_at="2026-03-01T12:00:00Z"),
        [missingworkers.ObservedGroup(confused, None, [confused, builders.worker_pod(confused)])],
    )
    recreated = {"annotations": {labels.PROGRESS_TIMEOUT: "5m", labels.ON_HANG: "recreate"}}
    hung, asking = (
        builders.leader_pod(lws, annotations={labels.HANG: "{}"}),
        lws | {"metadata": lws["metadata"] | recreated},
    )
    watched = LiveGroup(now=builders.NOW, leader=hung, obj=asking)
    checked(deciding.reconcile_group)(watched)
    tolerant = lws | {"metadata": lws["metadata"] | {"annotations": {labels.IN_PLACE_RESTARTS: "120s"}}}
    leader = builders.leader_pod(lws, annotations={labels.RESTARTED_IN_PLACE: "1"})
    checked(deciding.reconcile_group)(builders.live_group(leader=leader, obj=tolerant, pods=(leader,)))
    small = builders.hash_object(replicas=1)
    built = deploymentleaders.build(small, leaderworkerset.decode(small), key=builders.key_of(small), size=3)
    failure = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"}
    conditions = [{"type": "Progressing", "status": "True"}, failure]
    deployment = builders.as_applied(built, status={"conditions": conditions})
    shrinking = ObservedLeaderWorkerSet(leaderworkerset=small, leader_workload=deployment)
    checked(decisions.reconcile)(shrinking, builders.NOW)
    linked = builders.leader_pod(lws, annotations={GROUP_NAME: "web-0-a"})
    checked(deciding.reconcile_group)(LiveGroup(now=builders.NOW, leader=linked, obj=lws), Gangs(default="volcano"))
    aware = scheduled.lws(scheduled.REPLICA)
    of_scheduler = LiveGroup(
        now=builders.NOW,
        leader=scheduled.leader(aware),
        obj=aware,
        revisions=[builders.revision(aware)],
        scheduling=SchedulingObjects(objects=[scheduled.workload_of(aware)]),
    )
    checked(deciding.reconcile_group)(of_scheduler, scheduled.GANG)


END = {"terminated": {"exitCode": 1, "reason": "Error", "message": "no memory", "finishedAt": "2026-01-01T00:00:00Z"}}
ENDS: tuple[JSONObject, ...] = (
    *(
        {containers: [{"name": "main", "restartCount": 1, state: END}]}
        for containers in ("initContainerStatuses", "containerStatuses")
        for state in ("state", "lastState")
    ),
    *({containers: [{"name": "main", "state": END}]} for containers in ("initContainerStatuses", "containerStatuses")),
    {"reason": "NodeLost"},
    {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
)
"""Report a failure of terminated pods in each possible way."""


def decide_failure(lws: JSONObject, worker: JSONObject, status: JSONObject) -> None:
    """Run the decision for a group with a failed worker on a deleted node."""
    release = {"annotations": {labels.RELEASE_LOST_PODS_AFTER: "1s"}}
    leader = builders.leader_pod(lws)
    observed = builders.live_group(
        leader=leader,
        obj=lws | {"metadata": lws["metadata"] | release},
        pods=(leader, worker | {"status": worker["status"] | {"containerStatuses": []} | status}),
        statefulsets=(builders.worker_statefulset(leader),),
        nodes={"n1": None},
    )
    plan = checked(deciding.reconcile_group)(observed)
    is_disruption = "conditions" in status
    assert [type(action) for action in plan.actions] == [Delete, Delete, *([] if is_disruption else [Apply])]


def run_all() -> None:
    async def scenario() -> None:
        async with NodelessCluster().running() as cluster:
            await live(cluster)

    virtualtime.run(scenario())


def test_controllers_read_only_declared_fields(reads: list[Reads]) -> None:
    kinds = {one.kind for one in reads}
    assert kinds == {"LeaderWorkerSet", "Pod", "StatefulSet", "Service", "ControllerRevision", "Deployment"}
    assert_declared(reads)


def declared_paths(projection: Projection) -> set[Path]:
    return set(projection.paths) - set(Projection().paths)


def is_read(path: Path, read: set[Path]) -> bool:
    return any(one[: len(path)] == path for one in read)


@pytest.mark.parametrize(
    ("kind", "projections"),
    [
        ("Pod", [declared.POD]),
        ("StatefulSet", [declared.LEADER_STATEFULSET, declared.WORKER_STATEFULSET]),
        ("ControllerRevision", [declared.REVISION]),
        ("Deployment", [declared.DEPLOYMENT]),
    ],
)
def test_every_declared_field_is_read(
    kind: str, projections: list[Projection], reads: list[Reads], monkeypatch: pytest.MonkeyPatch
) -> None:
    decided: list[Reads] = []
    monkeypatch.setattr(kept, "assert_declared", decided.extend)
    decide_the_rest()
    read = {path for one in (*reads, *decided) if one.kind == kind for path in one.paths}
    paths = {path for projection in projections for path in declared_paths(projection)}
    assert {path for path in paths if not is_read(path, read)} == set()


@pytest.mark.parametrize(
    ("projection", "missing", "kind"),
    [
        (declared.POD, "status.phase", "Pod"),
        (declared.POD, "spec.nodeName", "Pod"),
        (declared.LEADER_STATEFULSET, "metadata.annotations", "StatefulSet"),
        (declared.REVISION, "data", "ControllerRevision"),
    ],
)
def test_undeclared_read_is_detected(
    projection: Projection, missing: str, kind: str, reads: list[Reads], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = tuple(path for path in projection.paths if path != parse(missing))
    monkeypatch.setattr(projection, "paths", paths)
    monkeypatch.setattr(kept, "is_declared", kept.is_declared.__wrapped__)
    with pytest.raises(UndeclaredReadError, match=f"{kind} {missing.replace('.', ' ')}"):
        assert_declared(reads)


def test_foreign_statefulset_with_a_worker_name_is_reported() -> None:
    """A StatefulSet of another owner with the same name is reported and not changed (docs/adr/0030)."""
    other = builders.leaderworkerset_object("web-0", metadata={"uid": "uid-of-another"})
    workers = builders.worker_statefulset(builders.leader_pod(builders.leaderworkerset_object()))
    observed = ObservedLeaderWorkerSet(leaderworkerset=other, leader_workload=workers)
    assert declared.statefulset_fields(workers) is declared.WORKER_STATEFULSET
    plan = checked(decisions.reconcile)(observed, builders.NOW)
    assert "StatefulSet web-0 is controlled by Pod web-0" in str(plan.error)
    assert [type(action) for action in plan.actions] == [Emit, PutStatus]


def test_leader_statefulset_keeps_its_template_for_any_labels() -> None:
    """Labels of a LeaderWorkerSet are copied to its StatefulSet, but do not make it a worker StatefulSet."""
    lws = builders.leaderworkerset_object(metadata={"labels": {labels.GROUP_INDEX: "0"}})
    statefulset = builders.worker_statefulset(builders.leader_pod(lws))
    owned = statefulset["metadata"] | {"ownerReferences": [meta.controller_reference(lws)]}
    assert declared.statefulset_fields(statefulset | {"metadata": owned}) is declared.LEADER_STATEFULSET
