"""Tests which component has not enabled the feature gate for native groups, based on a PodGroup and pods."""

from typing import Any

import pytest
from tests.explanations.builders import NOW, ago, pod

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.diagnosis.causes.featuregates import API_SERVER, CONTROLLER_MANAGER, PROMPT, SCHEDULER, disabled_gates

NAME = "web-0-e1"
AWARE = {labels.WORKLOAD_AWARE_SCHEDULING: "replica", labels.WORKLOAD_NAME: NAME}
MARKS = {labels.GANG_SCHEDULER: "native", labels.GANG_GROUP: NAME}
LINKED = {"schedulingGroup": {"podGroupName": NAME}}


def group(*, conditions: list[JSONObject] | None = None, **metadata: Any) -> JSONObject:
    return {"metadata": {"name": NAME, **metadata}, "status": {"conditions": conditions or []}}


def member(spec: JSONObject, *, reason: str = "Unschedulable", seconds: float = 60) -> JSONObject:
    told = {"type": "PodScheduled", "status": "False", "reason": reason, "lastTransitionTime": ago(seconds)}
    return pod(metadata={"annotations": MARKS}, spec=spec, status={"conditions": [told]})


TRIED = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("found", "pods", "component"),
    [
        (group(), [member({})], API_SERVER),
        (group(), [pod(metadata={"annotations": AWARE})], API_SERVER),
        (group(), [pod(metadata={"annotations": {labels.WORKLOAD_AWARE_SCHEDULING: "replica"}})], ""),
        (group(), [member(LINKED)], SCHEDULER),
        (group(conditions=[TRIED]), [member(LINKED)], ""),
        (group(), [pod(spec=LINKED)], ""),
        (group(), [member(LINKED, reason="SchedulingGated")], ""),
        (group(), [member(LINKED, seconds=PROMPT.total_seconds() - 1)], ""),
        (group(), [pod(metadata={"annotations": MARKS | {labels.GANG_SCHEDULER: "coscheduling"}})], ""),
        (group(), [], ""),
        (group(deletionTimestamp=ago(60)), [], CONTROLLER_MANAGER),
        (group(deletionTimestamp=ago(60)), [member(LINKED)], ""),
        (group(deletionTimestamp=ago(1)), [], ""),
    ],
    ids=[
        "a link that was dropped",
        "a link of spec.scheduling that was dropped",
        "a pod of an earlier version",
        "a pod that was tried alone",
        "a group that was tried",
        "a pod that waits for its group",
        "a pod behind a gate",
        "a pod that was tried a moment ago",
        "a pod of another scheduler",
        "no pods yet",
        "a deletion that does not end",
        "a deletion that waits for a pod",
        "a deletion of a moment ago",
    ],
)
def test_component_is_identified_by_its_missing_result(
    found: JSONObject, pods: list[JSONObject], component: str
) -> None:
    assert dict(disabled_gates([found], pods, NOW)) == ({component: NAME} if component else {})
