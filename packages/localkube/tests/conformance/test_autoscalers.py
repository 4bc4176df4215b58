"""Tests the defaults, errors, status and tables of HorizontalPodAutoscalers."""

from typing import Any

import pytest
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import named
from tests.conformance.transcript import TABLE, Session

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import HORIZONTAL_POD_AUTOSCALERS, HORIZONTAL_POD_AUTOSCALERS_V1

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def autoscaler(**spec: Any) -> JSONObject:
    """Return a HorizontalPodAutoscaler. A value of None omits the field."""
    given = {"scaleTargetRef": TARGET, "maxReplicas": 4} | spec
    return named("web", spec={name: value for name, value in given.items() if value is not None})


def resource(**target: Any) -> JSONObject:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def rules(**given: Any) -> JSONObject:
    return {"scaleUp": given}


UTILIZATION = {"type": "Utilization", "averageUtilization": 50}
AVERAGE = {"type": "AverageValue", "averageValue": "500m"}
METRIC = {"name": "queue"}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": AVERAGE}}

VALID: dict[str, dict[str, Any]] = {
    "least": {},
    "cpu": {"minReplicas": 2, "metrics": [resource(**UTILIZATION), resource(**AVERAGE)]},
    "every type": {
        "metrics": [
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "c", "target": UTILIZATION},
            },
            {"type": "Pods", "pods": {"metric": METRIC, "target": AVERAGE}},
            {"type": "External", "external": {"metric": METRIC, "target": {"type": "Value", "value": "10"}}},
            {"type": "Object", "object": {"metric": METRIC, "describedObject": TARGET, "target": AVERAGE}},
        ]
    },
    "empty behavior": {"behavior": {}},
    "one rule": {
        "behavior": rules(stabilizationWindowSeconds=30, policies=[{"type": "Pods", "value": 1, "periodSeconds": 60}])
    },
    "disabled": {"behavior": {"scaleDown": {"selectPolicy": "Disabled", "tolerance": "0.05"}}},
}

INVALID: dict[str, dict[str, Any]] = {
    "no target": {"scaleTargetRef": {}},
    "no spec": {"scaleTargetRef": None, "maxReplicas": None},
    "odd target": {"scaleTargetRef": {"apiVersion": "a/b/c", "kind": "x/y", "name": ".."}},
    "zero": {"minReplicas": 0},
    "negative": {"minReplicas": -1, "maxReplicas": -1},
    "too few at most": {"minReplicas": 5},
    "no source": {"metrics": [{"type": "Resource"}]},
    "no type": {"metrics": [{"type": "", "resource": {"name": "cpu", "target": UTILIZATION}}]},
    "odd type": {"metrics": [{"type": "Odd"}]},
    "two sources": {"metrics": [resource(**UTILIZATION) | {"pods": {"metric": METRIC, "target": AVERAGE}}]},
    "no name": {"metrics": [{"type": "Resource", "resource": {"target": UTILIZATION}}]},
    "no container": {"metrics": [{"type": "ContainerResource", "containerResource": {"name": "cpu", "target": UTILIZATION}}]},
    "no target value": {"metrics": [resource(type="Utilization"), resource(type="")]},
    "both values": {"metrics": [resource(type="Odd", averageValue="1", averageUtilization=10)]},
    "not positive": {"metrics": [resource(type="Utilization", averageUtilization=0), resource(type="AverageValue", averageValue="0")]},
    "pods": {"metrics": [{"type": "Pods", "pods": {"metric": {"name": ""}, "target": UTILIZATION}}]},
    "external": {"metrics": [{"type": "External", "external": {"metric": {"name": "a/b"}, "target": UTILIZATION}}]},
    "external both": {
        "metrics": [{"type": "External", "external": {"metric": METRIC, "target": AVERAGE | {"value": "1"}}}]
    },
    "object": {"metrics": [{"type": "Object", "object": {"metric": METRIC, "describedObject": {}, "target": UTILIZATION}}]},
    "object both": {
        "metrics": [{"type": "Object", "object": {"metric": METRIC, "describedObject": TARGET, "target": AVERAGE | {"value": "-1"}}}]
    },
    "windows": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": -1}, "scaleDown": {"stabilizationWindowSeconds": 3601}}},
    "select": {"behavior": rules(selectPolicy="Odd")},
    "policies": {"behavior": rules(policies=[{"type": "Odd", "value": 0, "periodSeconds": 0}, {"type": "Pods", "value": 1, "periodSeconds": 1801}])},
    "tolerance": {"behavior": rules(tolerance="-1")},
    "wrong types": {"maxReplicas": "4"},
}  # fmt: skip


@pytest.mark.parametrize("name", [*VALID, *INVALID])
def test_autoscaler_is_defaulted_or_refused(same: CheckSame, name: str) -> None:
    async def sequence(session: Session) -> None:
        await session.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(**(VALID | INVALID)[name]))

    same(sequence)


def test_autoscaler_is_written_and_read_with_its_status(same: CheckSame) -> None:
    current = {"averageUtilization": 35, "averageValue": "350m"}
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
        "conditions": [{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "m"}],
    }

    async def sequence(session: Session) -> None:
        two = [resource(**UTILIZATION), resource(**AVERAGE)]
        pods = {"type": "Pods", "pods": {"metric": METRIC, "target": AVERAGE}}
        made = await session.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(metrics=[*two, pods], minReplicas=2))
        await session.get(HORIZONTAL_POD_AUTOSCALERS, "web", accept=TABLE)
        await session.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"status": status}, subresource="status")
        await session.get(HORIZONTAL_POD_AUTOSCALERS, "web", accept=TABLE)
        await session.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"maxReplicas": 9, "metrics": two}})
        await session.get(HORIZONTAL_POD_AUTOSCALERS, "web", accept=TABLE)
        await session.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"maxReplicas": 0}})
        await session.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"status": {"conditions": None}}, subresource="status")
        await session.update(HORIZONTAL_POD_AUTOSCALERS, made)
        await session.delete(HORIZONTAL_POD_AUTOSCALERS, "web")

    same(sequence)


@pytest.mark.parametrize("given", [{}, {"targetCPUUtilizationPercentage": 50, "minReplicas": 2}], ids=["least", "cpu"])
def test_v1_autoscaler_is_served_as_v2(same: CheckSame, given: dict[str, Any]) -> None:
    async def sequence(session: Session) -> None:
        made = await session.create(HORIZONTAL_POD_AUTOSCALERS_V1, autoscaler(**given))
        await session.get(HORIZONTAL_POD_AUTOSCALERS, "web")
        await session.get(HORIZONTAL_POD_AUTOSCALERS_V1, "web", accept=TABLE)
        await session.get(HORIZONTAL_POD_AUTOSCALERS_V1)
        await session.patch(HORIZONTAL_POD_AUTOSCALERS_V1, "web", {"spec": {"targetCPUUtilizationPercentage": 70}})
        await session.get(HORIZONTAL_POD_AUTOSCALERS, "web")
        await session.update(HORIZONTAL_POD_AUTOSCALERS_V1, made)
        await session.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"metrics": [MEMORY, resource(**UTILIZATION)]}})
        status = {"currentReplicas": 2, "desiredReplicas": 3}
        await session.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"status": status}, subresource="status")
        await session.get(HORIZONTAL_POD_AUTOSCALERS_V1, "web")
        await session.delete(HORIZONTAL_POD_AUTOSCALERS_V1, "web")

    same(sequence)


@pytest.mark.parametrize("given", [{"targetCPUUtilizationPercentage": 0}, {"maxReplicas": 0}], ids=["target", "most"])
def test_v1_autoscaler_is_refused_with_field_paths_of_v2(same: CheckSame, given: dict[str, Any]) -> None:
    async def sequence(session: Session) -> None:
        await session.create(HORIZONTAL_POD_AUTOSCALERS_V1, autoscaler(**given))

    same(sequence)
