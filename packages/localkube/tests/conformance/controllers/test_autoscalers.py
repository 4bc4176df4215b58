"""Tests the autoscaler controller without load: limits, missing targets, and zero replicas."""

from tests.conformance.controllers.conftest import CheckSame
from tests.conformance.controllers.stage import Stage
from tests.conformance.controllers.test_replicasets import LABELS, TEMPLATE
from tests.conformance.objects import named
from tests.conformance.test_autoscalers import autoscaler

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import HORIZONTAL_POD_AUTOSCALERS, REPLICA_SETS

REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}


def replicas(stage: Stage) -> int:
    return int(meta.spec(stage.objects(REPLICA_SETS).get("web", {})).get("replicas", 0))


def scaler(stage: Stage) -> JSONObject:
    return stage.objects(HORIZONTAL_POD_AUTOSCALERS).get("web", {})


def tell(stage: Stage) -> None:
    status = dict(meta.status(scaler(stage)))
    times = {"lastTransitionTime": ""}
    status["conditions"] = [one | times for one in status.get("conditions") or ()]
    stage.told.append(status | ({"lastScaleTime": ""} if "lastScaleTime" in status else {}))


async def until(stage: Stage, name: str, reason: str) -> None:
    """Wait until a condition has this reason, and record the status."""

    def holds(current: Stage) -> bool:
        return (meta.find_condition(scaler(current), name) or {}).get("reason") == reason

    await stage.until(f"{name} {reason}", holds)
    tell(stage)


def test_autoscaler_respects_bounds_and_ignores_zero_replicas(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
        await stage.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(scaleTargetRef=REPLICA_SET | {"kind": "Odd"}))
        await until(stage, "AbleToScale", "FailedGetScale")
        await stage.delete(HORIZONTAL_POD_AUTOSCALERS, "web")
        await stage.until("it is gone", lambda one: not one.objects(HORIZONTAL_POD_AUTOSCALERS))
        await stage.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(scaleTargetRef=REPLICA_SET, minReplicas=2))
        await until(stage, "AbleToScale", "FailedGetScale")
        await stage.create(REPLICA_SETS, named("web", spec=spec))
        await stage.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"maxReplicas": 5}})  # decides at once
        await stage.until("the least", lambda one: replicas(one) == 2)
        await stage.patch(REPLICA_SETS, "web", {"spec": {"replicas": 0}})
        await stage.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"maxReplicas": 6}})
        await until(stage, "ScalingActive", "ScalingDisabled")

    same(scenario)
