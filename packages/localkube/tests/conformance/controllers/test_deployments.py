"""Compares the Deployment controllers of both clusters. Names are not compared because they end with hashes."""

from collections.abc import Callable
from typing import Any

from tests.conformance.controllers.conftest import CheckSame
from tests.conformance.controllers.stage import Stage
from tests.conformance.controllers.test_replicasets import LABELS, TEMPLATE
from tests.conformance.objects import named

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS, PODS, REPLICA_SETS

DESIRED = "deployment.kubernetes.io/desired-replicas"
REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"
HELD = {"nodeSelector": {"no": "such-node"}}


def web(**spec: object) -> JSONObject:
    """Return a Deployment with three replicas."""
    return named("web", spec={"replicas": 3, "selector": {"matchLabels": LABELS}, "template": TEMPLATE, **spec})


def changed(version: str, **spec: object) -> JSONObject:
    """Return a patch that sets a template annotation and pod spec fields."""
    return {"spec": {"template": {"metadata": {"annotations": {"version": version}}, "spec": spec}}}


def deployment_of(stage: Stage) -> JSONObject:
    return stage.objects(DEPLOYMENTS).get("web", {})


def sets_by_revision(stage: Stage) -> list[JSONObject]:
    return sorted(stage.objects(REPLICA_SETS).values(), key=lambda one: meta.annotations(one).get(REVISION, ""))


def sizes(stage: Stage) -> list[int]:
    """Return the desired number of pods of each ReplicaSet, by revision."""
    return [meta.spec(one)["replicas"] for one in sets_by_revision(stage)]


def reason(stage: Stage) -> str:
    return str((meta.find_condition(deployment_of(stage), "Progressing") or {}).get("reason"))


def is_at_rest(stage: Stage) -> bool:
    """Return whether all pods exist and the status is up to date. All objects must have been observed."""
    deployment, sets = deployment_of(stage), sets_by_revision(stage)
    pods = stage.objects(PODS).values()
    counts, statuses = meta.status(deployment), [meta.status(one) for one in (deployment, *sets)]
    told = {name: sum(meta.status(one).get(name) or 0 for one in sets) for name in ("replicas", "availableReplicas")}
    return (
        bool(deployment)
        and all(map(meta.is_observed, (deployment, *sets)))
        and not any(map(meta.is_deleting, pods))
        and not any(status.get("terminatingReplicas") for status in statuses)
        and all(meta.spec(one)["replicas"] == (meta.status(one).get("replicas") or 0) for one in sets)
        and len(pods) == sum(sizes(stage))
        and all((counts.get(name) or 0) == count for name, count in told.items())
        and (counts.get("readyReplicas") or 0) == (counts.get("availableReplicas") or 0)
    )


async def tell(stage: Stage, *wanted: int, held: int = 0, shows: Callable[[Stage], bool] = lambda _: True) -> None:
    """Wait until the ReplicaSets have these sizes, by revision. All pods except the blocked ones must be available.

    Then record the objects.
    """

    def holds(current: Stage) -> bool:
        ready = meta.status(deployment_of(current)).get("availableReplicas") or 0
        return sizes(current) == [*wanted] and ready == sum(wanted) - held and is_at_rest(current) and shows(current)

    await stage.until(f"sizes {wanted}", holds)
    deployment = deployment_of(stage)
    stage.told.append(
        {
            "annotations": meta.annotations(deployment),
            "generation": meta.generation(deployment),
            "status": _without_hashes(meta.status(deployment), stage),
            "sets": [_shown(one) for one in sets_by_revision(stage)],
        }
    )


def is_under_way(stage: Stage) -> bool:
    return reason(stage) == "ReplicaSetUpdated"


def is_complete(stage: Stage, revision: str = "") -> bool:
    """Return whether the new ReplicaSet of this revision has all of its pods, and the pods are available."""
    deployment = deployment_of(stage)
    wanted, status = meta.spec(deployment)["replicas"], meta.status(deployment)
    counts = [status.get(name) or 0 for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
    number = meta.annotations(deployment).get(REVISION)
    return reason(stage) == "NewReplicaSetAvailable" and counts == [wanted] * 4 and number == (revision or number)


def _shown(replicaset: JSONObject) -> JSONObject:
    spec = meta.spec(replicaset)
    template = spec["template"]
    digest = meta.labels(replicaset).get(HASH, "")
    assert meta.labels(template).get(HASH) == digest == spec["selector"]["matchLabels"][HASH]
    assert meta.name(replicaset) == f"web-{digest}"
    owners = [{**one, "uid": ""} for one in meta.metadata(replicaset)["ownerReferences"]]
    return {
        "annotations": meta.annotations(replicaset),
        "labels": sorted(meta.labels(replicaset)),
        "owners": owners,
        "finalizers": meta.metadata(replicaset).get("finalizers"),
        "spec": {name: value for name, value in spec.items() if name not in {"selector", "template"}},
        "template": {**template, "metadata": {**meta.metadata(template), "labels": sorted(meta.labels(template))}},
        "status": {name: count for name, count in meta.status(replicaset).items() if name != "observedGeneration"},
    }


def _without_hashes(status: JSONObject, stage: Stage) -> JSONObject:
    def anonymous(condition: JSONObject) -> JSONObject:
        message = condition["message"]
        for revision, one in enumerate(sets_by_revision(stage)):
            message = message.replace(meta.name(one), f"web-{revision}")
        return {**condition, "message": message}

    conditions = sorted(map(anonymous, status.get("conditions") or ()), key=lambda one: one["type"])
    return {**status, "conditions": conditions}


async def patch(stage: Stage, change: Any, **more: Any) -> None:
    await stage.patch(DEPLOYMENTS, "web", change, **more)


def test_deployment_rolls_out_and_back_and_scales(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(
            DEPLOYMENTS, web(minReadySeconds=1) | {"metadata": {"name": "web", "annotations": {"team": "a"}}}
        )
        await tell(stage, 3, shows=is_complete)
        await patch(stage, {"spec": {"replicas": 5}}, subresource="scale")
        await tell(stage, 5, shows=is_complete)
        await patch(stage, changed("2") | {"metadata": {"annotations": {"team": "b"}}})
        await tell(stage, 0, 5, shows=is_complete)
        await patch(stage, {"spec": {"minReadySeconds": 0, "replicas": 2}})
        await tell(stage, 0, 2, shows=is_complete)
        await patch(stage, {"spec": {"template": {"metadata": {"annotations": None}}}})
        await tell(stage, 0, 2, shows=lambda one: is_complete(one, "3"))
        await patch(stage, {"spec": {"replicas": 0}})
        await tell(stage, 0, 0, shows=is_complete)

    same(scenario)


def test_blocked_rollout_stays_within_its_bounds(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        bounds = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": "20%"}}
        await stage.create(DEPLOYMENTS, web(replicas=10, strategy=bounds))
        await tell(stage, 10, shows=is_complete)
        await patch(stage, changed("2", **HELD))
        await tell(stage, 8, 5, held=5, shows=is_under_way)
        await patch(stage, {"spec": {"replicas": 15}})
        await tell(stage, 11, 7, held=7, shows=is_under_way)
        await patch(stage, {"spec": {"replicas": 6}})
        await tell(stage, 5, 4, held=4, shows=is_under_way)
        await patch(stage, changed("3", **HELD))
        await tell(stage, 5, 0, 4, held=4, shows=is_under_way)
        await patch(stage, {"spec": {"template": {"metadata": {"annotations": None}, "spec": {"nodeSelector": None}}}})
        await tell(stage, 0, 0, 6, shows=is_complete)

    same(scenario)


def test_recreate_stops_all_old_pods_before_it_starts_new_ones(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(DEPLOYMENTS, web(strategy={"type": "Recreate"}))
        await tell(stage, 3, shows=is_complete)
        stage.order.clear()
        await patch(stage, changed("2"))
        await tell(stage, 0, 3, shows=is_complete)
        stage.told.append({"order": [line.split()[0] for line in stage.order]})
        await patch(stage, changed("3", **HELD))
        await tell(stage, 0, 0, 3, held=3, shows=is_under_way)

    same(scenario)


def test_paused_deployment_only_scales(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(DEPLOYMENTS, web())
        await tell(stage, 3, shows=is_complete)
        await patch(stage, {"spec": {"paused": True}})
        await tell(stage, 3, shows=lambda one: reason(one) == "DeploymentPaused")
        await patch(stage, changed("2"))
        await patch(stage, {"spec": {"replicas": 4}})
        await tell(stage, 4)
        await patch(stage, {"spec": {"paused": False}})
        await tell(stage, 0, 4, shows=is_complete)

    same(scenario)


def test_rollout_stops_when_scaled_to_the_size_of_its_only_set(same: CheckSame) -> None:
    """The ReplicaSet retains an annotation with its former size, so the Deployment scales forever.

    See docs/adr/0017.
    """

    async def scenario(stage: Stage) -> None:
        await stage.create(DEPLOYMENTS, web(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}))
        await tell(stage, 3, shows=is_complete)
        await patch(stage, {"spec": {"paused": True}})
        await tell(stage, 3, shows=lambda one: reason(one) == "DeploymentPaused")
        await patch(stage, {"spec": {"replicas": 2, **changed("2")["spec"]}})
        await tell(stage, 2)
        (only,) = stage.objects(REPLICA_SETS)
        await stage.patch(REPLICA_SETS, only, {"metadata": {"annotations": {DESIRED: "3"}}})
        await patch(stage, {"spec": {"paused": False}})
        await tell(stage, 2, shows=lambda one: reason(one) == "DeploymentResumed")
        await patch(stage, {"spec": {"replicas": 3}})
        await tell(stage, 0, 3, shows=is_complete)

    same(scenario)


def test_revision_history_limit_bounds_the_old_sets(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(DEPLOYMENTS, web(revisionHistoryLimit=1, replicas=1))
        await tell(stage, 1, shows=is_complete)
        await patch(stage, changed("2"))
        await tell(stage, 0, 1, shows=is_complete)
        await patch(stage, changed("3"))
        await tell(stage, 0, 1, shows=lambda one: is_complete(one, "3"))
        await patch(stage, {"spec": {"revisionHistoryLimit": 0}})
        await tell(stage, 1)

    same(scenario)


def test_rollout_without_progress_times_out(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(DEPLOYMENTS, web(progressDeadlineSeconds=2))
        await tell(stage, 3, shows=is_complete)
        await patch(stage, changed("2", **HELD))
        await tell(stage, 3, 1, held=1, shows=lambda one: reason(one) == "ProgressDeadlineExceeded")
        await patch(stage, {"spec": {"template": {"spec": {"nodeSelector": None}}}})
        await tell(stage, 0, 0, 3, shows=is_complete)

    same(scenario)


def test_matching_orphans_are_adopted_and_others_released(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(DEPLOYMENTS, web())
        await tell(stage, 3, shows=is_complete)
        await stage.delete(DEPLOYMENTS, "web", propagation="Orphan")
        await stage.until("the owner is gone", lambda one: not deployment_of(one))
        await stage.create(DEPLOYMENTS, web(replicas=2))
        await tell(stage, 2, shows=is_complete)

    same(scenario)


def test_deleted_deployment_deletes_its_pods(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(DEPLOYMENTS, web())
        await tell(stage, 3, shows=is_complete)
        await stage.delete(DEPLOYMENTS, "web", propagation="Foreground")
        await stage.until(
            "nothing is left", lambda one: not any(one.objects(kind) for kind in (DEPLOYMENTS, REPLICA_SETS, PODS))
        )

    same(scenario)
