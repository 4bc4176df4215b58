"""Tests that pod events of cloud components are read on both clusters, and result in the correct status."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.lwsctl.explanations import asking, named, typed, unschedulable

from kuberuntime.objects.resources import CORE_EVENTS, PODS
from lwsctl.model.health import Verdict

GPUS: Final = {"nvidia_com__gpu": "8"}


async def record(
    space: LiveScenario, pod: str, reason: str, message: str, *, component: str, kind: str = "Normal", ago: float = 0
) -> None:
    """Write a pod event in the same way as another component."""
    uid = (await space.get(PODS, pod))["metadata"]["uid"]
    moment = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat(timespec="seconds").replace("+00:00", "Z")
    about = {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": space.namespace, "uid": uid}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.{reason.lower()}{int(ago)}", "namespace": space.namespace},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": kind,
        "source": {"component": component},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
    await space.create(event, CORE_EVENTS)


async def test_explain_follows_an_autoscaler_from_hope_to_refusal(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=2, template=asking(**GPUS)))
    await space.until(unschedulable("Insufficient"))
    added = "pod triggered scale-up: [{gpu-pool-a 0->2 (max: 8)}]"
    await record(space, "web-0", "TriggeredScaleUp", added, component="cluster-autoscaler", ago=30)
    told = await named(space, "LWS-E108")
    assert told.verdict is Verdict.PROGRESSING
    assert "cluster-autoscaler is adding nodes (gpu-pool-a 0 to 2 of at most 8, " in told.sentence
    shown = await typed(space, "-n", space.namespace, "get", "web")
    assert "cluster-autoscaler is adding nodes" in shown
    waited = await typed(space, "-n", space.namespace, "wait", "web", "--fail-fast", "--timeout=8s", code=124)
    assert "stuck" not in waited
    hasty = await typed(space, "-n", space.namespace, "wait", "web", "--fail-fast", "--node-patience=5s", code=1)
    assert "LWS-E035" in hasty
    refused = "pod didn't trigger scale-up: 1 max node group size reached"
    await record(space, "web-0", "NotTriggerScaleUp", refused, component="cluster-autoscaler")
    told = await named(space, "LWS-E035")
    assert told.verdict is Verdict.STUCK
    assert told.steps[0] == "increase the maximum size of a node group of cluster-autoscaler"
