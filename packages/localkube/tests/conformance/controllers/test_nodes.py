"""Compares the objects of both clusters after taint-based evictions."""

from tests.conformance.controllers.conftest import CheckSame
from tests.conformance.controllers.stage import Stage
from tests.conformance.objects import container, named

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS

NODE = ObjectKey("", "node-50")
POOL: JSONObject = {"key": "pool", "value": "gpu", "effect": "NoExecute"}


def sleeping_pod(name: str, *tolerations: JSONObject) -> JSONObject:
    """Return a pod that is assigned to the node and terminates immediately."""
    containers = [container(command=["sleep", "infinity"])]
    spec = {"nodeName": NODE.name, "terminationGracePeriodSeconds": 1, "containers": containers}
    return named(name, spec={**spec, "tolerations": [*tolerations]})


def test_pods_are_evicted_from_a_node_with_untolerated_taints(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        exists = {"key": "pool", "operator": "Exists", "effect": "NoExecute"}
        await stage.create(PODS, sleeping_pod("hasty"))
        await stage.create(PODS, sleeping_pod("wrong", {**POOL, "value": "cpu"}))
        await stage.create(PODS, sleeping_pod("brief", exists | {"tolerationSeconds": 1}))
        await stage.create(PODS, sleeping_pod("patient", exists | {"tolerationSeconds": 600}))
        await stage.create(PODS, sleeping_pod("steadfast", POOL))
        await stage.until("five pods", lambda one: sum(map(is_ready, one.objects(PODS).values())) == 5)
        await set_taints(stage, POOL, {"key": "soft", "effect": "PreferNoSchedule"})
        try:
            await stage.tell("two pods", lambda one: [*one.objects(PODS)] == ["patient", "steadfast"])
        finally:
            await set_taints(stage)

    async def set_taints(stage: Stage, *taints: JSONObject) -> None:
        await stage.client.patch(NODES, NODE, {"spec": {"taints": [*taints]}}, kind="merge")

    same(scenario)


def is_ready(pod: JSONObject) -> bool:
    """Return whether the pod is ready."""
    return meta.is_condition_true(pod, "Ready")
