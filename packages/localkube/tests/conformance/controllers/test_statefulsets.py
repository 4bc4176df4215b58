"""Compares the objects of both clusters after reconciliation by the StatefulSet controllers."""

import pytest
from tests.conformance.controllers.conftest import CheckSame
from tests.conformance.controllers.stage import Expectation, Stage
from tests.conformance.objects import container, named

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFULSETS


def web(**spec: object) -> JSONObject:
    """Return a StatefulSet with two replicas whose pods terminate immediately."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container(command=["sleep", "infinity"])]},
    }
    selector = {"matchLabels": {"app": "web"}}
    return named("web", spec={"replicas": 2, "serviceName": "web", "selector": selector, "template": template, **spec})


def image(value: str) -> JSONObject:
    """Return a patch that sets the image."""
    return {"spec": {"template": {"spec": {"containers": [container(image=value, command=["sleep", "infinity"])]}}}}


CLAIMS = [
    {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "kept",
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }
]


def settled(*pods: str, updated: int | None = None) -> Expectation:
    """Assert that exactly these pods exist, that all pods are ready, and that the status matches."""

    def holds(stage: Stage) -> bool:
        found, sets = stage.objects(PODS), stage.objects(STATEFULSETS)
        if [*found] != sorted(pods) or any(map(meta.is_deleting, found.values())) or not sets:
            return False
        one = sets["web"]
        status = meta.status(one)
        counted = {name: status.get(name, 0) for name in ("replicas", "readyReplicas", "availableReplicas")}
        wanted = len(pods) if updated is None else updated
        return (
            all(meta.is_condition_true(pod, "Ready") for pod in found.values())
            and counted == dict.fromkeys(counted, len(pods))
            and status.get("observedGeneration") == meta.generation(one)
            and status.get("updatedReplicas", 0) == wanted
        )

    return holds


def test_ordered_pods_are_created_and_deleted_one_by_one(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, web(replicas=3))
        await stage.tell("three pods", settled("web-0", "web-1", "web-2"), ordered=True)
        await stage.patch(STATEFULSETS, "web", {"spec": {"replicas": 1}})
        await stage.tell("one pod", settled("web-0"), ordered=True)
        await stage.patch(STATEFULSETS, "web", {"spec": {"replicas": 2}}, subresource="scale")
        await stage.tell("two pods", settled("web-0", "web-1"), ordered=True)
        await stage.patch(STATEFULSETS, "web", {"spec": {"replicas": 0}})
        await stage.tell("no pods", settled(), ordered=True)

    same(scenario)


def test_parallel_pods_are_created_and_deleted_together(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, web(replicas=3, podManagementPolicy="Parallel", ordinals={"start": 5}))
        await stage.tell("three pods", settled("web-5", "web-6", "web-7"))
        await stage.patch(STATEFULSETS, "web", {"spec": {"replicas": 1}})
        await stage.tell("one pod", settled("web-5"))
        await stage.patch(STATEFULSETS, "web", {"spec": {"ordinals": {"start": 4}}})
        await stage.tell("another pod", settled("web-4"))

    same(scenario)


def test_rolling_update_starts_at_the_last_pod(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, web(replicas=3))
        await stage.tell("three pods", settled("web-0", "web-1", "web-2"))
        await stage.patch(STATEFULSETS, "web", image("app:2"))
        await stage.tell("the new template", lambda one: _rolled(one, "app:2", 3), ordered=True)
        await stage.patch(STATEFULSETS, "web", image("app:1"))
        await stage.tell("the old template again", lambda one: _rolled(one, "app:1", 3), ordered=True)

    same(scenario)


def test_partition_holds_pods_back(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await stage.create(STATEFULSETS, web(replicas=3, updateStrategy=rolling, podManagementPolicy="Parallel"))
        await stage.tell("three pods", settled("web-0", "web-1", "web-2"))
        await stage.patch(STATEFULSETS, "web", image("app:2"))
        await stage.tell("one new pod", lambda one: _rolled(one, "app:2", 1), ordered=True)
        await stage.delete(PODS, "web-0")
        await stage.tell("web-0 again", lambda one: "added web-0" in one.order and _rolled(one, "app:2", 1))
        await stage.patch(STATEFULSETS, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await stage.tell("three new pods", lambda one: _rolled(one, "app:2", 3), ordered=True)

    same(scenario)


def test_on_delete_update_waits_for_a_deletion(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, web(updateStrategy={"type": "OnDelete"}))
        await stage.tell("two pods", settled("web-0", "web-1"))
        await stage.patch(STATEFULSETS, "web", image("app:2"))
        await stage.tell(
            "a new revision",
            lambda one: settled("web-0", "web-1", updated=0)(one) and len(one.objects(CONTROLLER_REVISIONS)) == 2,
        )
        await stage.delete(PODS, "web-0")
        await stage.tell("one new pod", lambda one: _rolled(one, "app:2", 1))

    same(scenario)


def _rolled(stage: Stage, wanted: str, count: int) -> bool:
    pods = stage.objects(PODS)
    images = [pod["spec"]["containers"][0]["image"] for pod in pods.values()]
    names = [*pods]
    return images.count(wanted) == count and settled(*names, updated=count)(stage) and len(names) in {2, 3}


@pytest.mark.parametrize("when_deleted", ["Retain", "Delete"])
@pytest.mark.parametrize("when_scaled", ["Retain", "Delete"])
def test_claims_are_created_kept_and_deleted(same: CheckSame, when_deleted: str, when_scaled: str) -> None:
    def claims(*names: str) -> Expectation:
        return lambda one: [*one.objects(PERSISTENT_VOLUME_CLAIMS)] == [f"data-{name}" for name in names]

    async def scenario(stage: Stage) -> None:
        await stage.provide_volumes("kept", 3)
        policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
        await stage.create(STATEFULSETS, web(volumeClaimTemplates=CLAIMS, persistentVolumeClaimRetentionPolicy=policy))
        await stage.tell("claims", lambda one: settled("web-0", "web-1")(one) and claims("web-0", "web-1")(one))
        await stage.patch(STATEFULSETS, "web", {"spec": {"replicas": 1}})
        left = ["web-0"] if when_scaled == "Delete" else ["web-0", "web-1"]
        await stage.tell("one pod", lambda one: settled("web-0")(one) and claims(*left)(one))
        await stage.delete(STATEFULSETS, "web")
        kept = left if when_deleted == "Retain" else []
        await stage.tell("what is kept", lambda one: not one.objects(PODS) and claims(*kept)(one))

    same(scenario)


def test_pods_are_adopted_and_released(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, web())
        await stage.tell("two pods", settled("web-0", "web-1"))
        await stage.delete(STATEFULSETS, "web", "Orphan")
        await stage.tell("orphans", lambda one: not one.objects(STATEFULSETS) and _orphaned(one))
        await stage.create(STATEFULSETS, web())
        await stage.tell(
            "adopted pods", lambda one: settled("web-0", "web-1")(one) and not _orphaned(one), ordered=True
        )
        await stage.patch(PODS, "web-1", {"metadata": {"labels": {"app": "other"}}})
        await stage.until(
            "a released pod", lambda one: not meta.metadata(one.objects(PODS)["web-1"]).get("ownerReferences")
        )

    same(scenario)


def _orphaned(stage: Stage) -> bool:
    return not any(meta.metadata(pod).get("ownerReferences") for pod in stage.objects(PODS).values())


def test_failed_pod_is_replaced(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, web())
        await stage.until("two pods", settled("web-0", "web-1"))
        stage.order.clear()
        await stage.delete(PODS, "web-0")
        await stage.tell("a new pod", lambda one: len(one.order) == 2 and settled("web-0", "web-1")(one), ordered=True)

    same(scenario)
