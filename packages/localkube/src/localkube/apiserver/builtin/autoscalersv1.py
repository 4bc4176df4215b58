"""Defines the HorizontalPodAutoscaler kind in autoscaling/v1, which has a field for only one metric.

Objects are stored as autoscaling/v2. Fields that v1 lacks become annotations of the v1 object, with the same names and
form as in Kubernetes, so that a v1 client can read and write objects without loss.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Final

import msgspec

from kuberuntime.objects import meta, names, resources
from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.builtin.autoscalers import AUTOSCALER, HALF_BUSY, validate_autoscaler
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.model.kind import Alias, UndecodableError
from localkube.apiserver.types import typed

TARGET: Final = "targetCPUUtilizationPercentage"
CURRENT: Final = "currentCPUUtilizationPercentage"

ANNOTATIONS: Final = {
    f"autoscaling.alpha.kubernetes.io/{name}": place
    for name, place in {
        "metrics": ("spec", "metrics"),
        "behavior": ("spec", "behavior"),
        "current-metrics": ("status", "currentMetrics"),
        "conditions": ("status", "conditions"),
    }.items()
}
"""The annotations of v1 objects, and the v2 field that each annotation contains."""


def to_v2(autoscaler_v1: JSONObject) -> JSONObject:
    """Convert an autoscaler from v1 to v2. Invalid annotations are treated as absent."""
    notes = dict(meta.annotations(autoscaler_v1))
    spec, status = dict(meta.spec(autoscaler_v1)), dict(meta.status(autoscaler_v1))
    parts: dict[str, JSONObject] = {"spec": spec, "status": status}
    target, current = spec.pop(TARGET, None), status.pop(CURRENT, None)
    if current is not None:
        status["currentMetrics"] = [_cpu("current", {"averageUtilization": current})]
    for name, (part, field) in ANNOTATIONS.items():
        value = _decode_annotation(notes.pop(name, ""), part, field)
        if value is not None:
            parts[part][field] = value
    if target is not None:
        utilization = {"type": "Utilization", "averageUtilization": target}
        spec["metrics"] = [*(spec.get("metrics") or ()), _cpu("target", utilization)]
    if not spec.get("metrics"):
        spec["metrics"] = [deepcopy(HALF_BUSY)]
    metadata = meta.metadata(autoscaler_v1) | {"annotations": notes}
    autoscaler = {**autoscaler_v1, "apiVersion": AUTOSCALER.resource.api_version, "metadata": metadata, **parts}
    return typed.normalize(AUTOSCALER.struct, autoscaler)


def from_v2(stored: JSONObject) -> JSONObject:
    """Convert a stored autoscaler to v1. Client annotations with reserved names are dropped."""
    spec, status = dict(meta.spec(stored)), dict(meta.status(stored))
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    targets = [target for metric in metrics if (target := _utilization(metric, "target")) is not None]
    values = [value for metric in current if (value := _utilization(metric, "current")) is not None]
    spec["metrics"] = [metric for metric in metrics if _utilization(metric, "target") is None]
    parts: dict[str, JSONObject] = {"spec": spec, "status": status}
    notes = {name: text for name, text in meta.annotations(stored).items() if name not in ANNOTATIONS}
    for name, (part, field) in ANNOTATIONS.items():
        if value := parts[part].pop(field, None):
            notes[name] = msgspec.json.encode(value).decode()
    spec |= {TARGET: targets[0]} if targets else {}
    status |= {CURRENT: values[-1]} if values else {}
    autoscaler_v1 = {**stored, "apiVersion": AUTOSCALER_V1.resource.api_version, **parts}
    return typed.normalize(
        AUTOSCALER_V1.struct, autoscaler_v1 | {"metadata": meta.metadata(stored) | {"annotations": notes}}
    )


def _cpu(name: str, value: JSONObject) -> JSONObject:
    return {"type": "Resource", "resource": {"name": "cpu", name: value}}


def _utilization(metric: JSONObject, name: str) -> int | None:
    """Return the CPU utilization in percent, which is the only metric with a field in v1."""
    resource = metric.get("resource") or {}
    value: int | None = (resource.get(name) or {}).get("averageUtilization")
    return value if metric.get("type") == "Resource" and resource.get("name") == "cpu" else None


def _decode_annotation(text: str, part: str, field: str) -> JSON:
    """Return the value of an annotation, or None if it is invalid for the v2 field."""
    try:
        content = msgspec.json.decode(text)
        return typed.normalize(AUTOSCALER.struct, {part: {field: content}})[part].get(field)
    except (msgspec.DecodeError, UndecodableError):
        return None


def default_v1(autoscaler: JSONObject) -> None:
    """Set the CPU utilization if no metric is specified."""
    autoscaler["spec"] = from_v2(to_v2(autoscaler))["spec"]


def validate_v1(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors according to the v2 rules, with v2 paths as in kube-apiserver."""
    return validate_autoscaler(to_v2(new), None)


AUTOSCALER_V1 = Strategy(
    resource=resources.HORIZONTAL_POD_AUTOSCALERS_V1,
    struct="HorizontalPodAutoscalerV1",
    description=AUTOSCALER.description,
    default=default_v1,
    validate=validate_v1,
    name_rule=names.dns_1123_subdomain,
    has_status=True,
    short_names=AUTOSCALER.short_names,
    categories=AUTOSCALER.categories,
    alias=Alias(resources.HORIZONTAL_POD_AUTOSCALERS, to_v2, from_v2),
)
