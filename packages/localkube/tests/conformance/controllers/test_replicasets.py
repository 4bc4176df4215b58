"""Compares the ReplicaSet controllers of both clusters. Only counts are compared, because pod names are random."""

from tests.conformance.controllers.conftest import CheckSame
from tests.conformance.controllers.stage import Stage
from tests.conformance.objects import container, named

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, REPLICA_SETS

LABELS = {"app": "web"}
TEMPLATE: JSONObject = {
    "metadata": {"labels": LABELS},
    "spec": {"terminationGracePeriodSeconds": 1, "containers": [container(command=["sleep", "infinity"])]},
}
COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


async def tell(stage: Stage, count: int, pods: int) -> None:
    """Wait until the ReplicaSet status reports `count` pods. Record the status and the pod fields."""

    def holds(current: Stage) -> bool:
        found, sets = current.objects(PODS).values(), current.objects(REPLICA_SETS)
        if "web" not in sets or len(found) != pods or any(map(meta.is_deleting, found)):
            return False
        status = meta.status(sets["web"])
        counted = [status.get(name, 0) for name in COUNTS]
        ended = not status.get("terminatingReplicas")
        return counted == [count] * 4 and ended and meta.is_observed(sets["web"])

    await stage.until(f"{count} of {pods} pods", holds)
    owned = [pod for pod in stage.objects(PODS).values() if meta.controller_of(pod)]
    shown = [
        [meta.labels(pod), meta.metadata(pod).get("generateName"), meta.spec(pod)["restartPolicy"]] for pod in owned
    ]
    stage.told.append({"status": meta.status(stage.objects(REPLICA_SETS)["web"]), "owned": sorted(shown, key=str)})


def web(**spec: object) -> JSONObject:
    """Return a ReplicaSet with two replicas."""
    return named("web", spec={"replicas": 2, "selector": {"matchLabels": LABELS}, "template": TEMPLATE, **spec})


def test_replicaset_creates_and_deletes_pods_to_its_size(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(REPLICA_SETS, web(minReadySeconds=1))
        await tell(stage, 2, 2)
        await stage.patch(REPLICA_SETS, "web", {"spec": {"replicas": 4}}, subresource="scale")
        await tell(stage, 4, 4)
        await stage.delete(PODS, next(iter(stage.objects(PODS))))
        await stage.patch(REPLICA_SETS, "web", {"spec": {"replicas": 0}})
        await tell(stage, 0, 0)

    same(scenario)


def test_matching_pods_are_adopted_and_others_released(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(PODS, {"metadata": {"name": "orphan", "labels": LABELS}, "spec": TEMPLATE["spec"]})
        await stage.create(REPLICA_SETS, web())
        await tell(stage, 2, 2)
        stage.told.append({"adopted": bool(meta.controller_of(stage.objects(PODS)["orphan"]))})
        await stage.patch(PODS, "orphan", {"metadata": {"labels": {"app": "other"}}})
        await tell(stage, 2, 3)

    same(scenario)


def test_cheapest_pod_is_deleted_first(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(REPLICA_SETS, web(replicas=3))
        await tell(stage, 3, 3)
        cheap = sorted(stage.objects(PODS))[1]
        await stage.patch(
            PODS, cheap, {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
        )
        await stage.until("the cost is seen", lambda one: bool(meta.annotations(one.objects(PODS)[cheap])))
        await stage.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
        await tell(stage, 2, 2)
        stage.told.append({"the cheap pod stays": cheap in stage.objects(PODS)})

    same(scenario)
