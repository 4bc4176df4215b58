"""Implements the rules of autoscaling/v2, with the messages of kube-apiserver."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import quantity
from kuberuntime.objects.field import FieldError, all_invalid, invalid, not_supported, required_error
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.podrules.values import forbidden, validate_minimum, validate_selector

LONGEST_WINDOW: Final = 3600
LONGEST_PERIOD: Final = 1800

SELECT: Final = ("Disabled", "Max", "Min")
POLICIES: Final = ("Percent", "Pods")
TARGETS: Final = ("Utilization", "Value", "AverageValue")

CORE_SCALED: Final = ("ReplicationController",)
"""The scalable kinds in the core API group."""

SOURCES: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}
"""The metric types, and the field of each type."""


def validate(spec: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield the errors of an autoscaler's spec."""
    least, most = spec["minReplicas"], spec["maxReplicas"]
    yield from validate_minimum(least, 1, f"{path}.minReplicas")
    if least == 0 and not any(metric.get("type") in {"Object", "External"} for metric in spec["metrics"]):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden(f"{path}.metrics", text)
    if most == 0:
        yield required_error(f"{path}.maxReplicas", "must be set and greater than 0")
    yield from validate_minimum(most or 1, 1, f"{path}.maxReplicas")
    if most < least:
        yield invalid(f"{path}.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _validate_reference(spec["scaleTargetRef"], f"{path}.scaleTargetRef")
    yield from _validate_target_version(spec["scaleTargetRef"], f"{path}.scaleTargetRef.apiVersion")
    for index, metric in enumerate(spec.get("metrics") or ()):
        yield from _validate_metric(metric, f"{path}.metrics[{index}]")
    for way in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(way)
        if rules is not None:
            yield from _validate_rules(rules, f"{path}.behavior.{way}")


def _validate_reference(reference: JSONObject, path: str) -> Iterator[FieldError]:
    for field in ("kind", "name"):
        value = reference[field]
        if not value:
            yield required_error(f"{path}.{field}")
        yield from all_invalid(f"{path}.{field}", value, _segment_errors(value))


def _validate_target_version(reference: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield the errors of the API version of the scaled object."""
    api_version = reference.get("apiVersion", "")
    if "/" not in api_version and reference["kind"] not in CORE_SCALED:
        yield invalid(path, api_version, "apiVersion must specify API group")
    if api_version.count("/") > 1:
        yield invalid(path, api_version, f"unexpected GroupVersion string: {api_version}")


def _segment_errors(value: str) -> Iterator[str]:
    """Yield errors if a value is not a valid path segment."""
    if value in {".", ".."}:
        yield f"may not be '{value}'"
        return
    for character in "/%":
        if character in value:
            yield f"may not contain '{character}'"


def _validate_metric(metric: JSONObject, path: str) -> Iterator[FieldError]:
    kind = metric["type"]
    present = [field for field in SOURCES.values() if metric.get(field) is not None]
    if not kind:
        yield required_error(f"{path}.type", "must specify a metric source type")
    if kind not in SOURCES:
        yield not_supported(f"{path}.type", kind, sorted(SOURCES))
    if present:
        yield from _validate_source(present[0], metric[present[0]], f"{path}.{present[0]}")
    source = SOURCES.get(kind, "")
    if source and source not in present:
        yield required_error(f"{path}.{source}", "must populate information for the given metric source")
    if len(present) > 1:
        for field in sorted(set(present) - {source}):
            yield forbidden(f"{path}.{field}", "must populate the given metric source only")


def _validate_source(field: str, source: JSONObject, path: str) -> Iterator[FieldError]:
    if field == "object":
        yield from _validate_reference(source["describedObject"], f"{path}.describedObject")
    if field in {"resource", "containerResource"}:
        if not source["name"]:
            yield required_error(f"{path}.name", "must specify a resource name")
        if field == "containerResource" and not source["container"]:
            yield required_error(f"{path}.container", "must specify a container")
    else:
        yield from _validate_identifier(source["metric"], f"{path}.metric")
    target = source["target"]
    yield from _validate_target(target, f"{path}.target")
    yield from _validate_choice(field, target, f"{path}.target")


def _validate_identifier(metric: JSONObject, path: str) -> Iterator[FieldError]:
    name = metric["name"]
    if not name:
        yield required_error(f"{path}.name", "must specify a metric name")
    yield from all_invalid(f"{path}.name", name, _segment_errors(name))
    yield from validate_selector(metric.get("selector"), f"{path}.selector")


def _validate_target(target: JSONObject, path: str) -> Iterator[FieldError]:
    kind = target["type"]
    if not kind:
        yield required_error(f"{path}.type", "must specify a metric target type")
    if kind not in TARGETS:
        yield invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if target.get(field) is not None and not _is_positive(target[field]):
            yield invalid(f"{path}.{field}", target[field], "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid(f"{path}.averageUtilization", share, "must be greater than 0")


def _validate_choice(field: str, target: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield errors if a target does not have exactly the value that matches its metric source."""
    present = {name for name in ("value", "averageValue", "averageUtilization") if target.get(name) is not None}
    match field:
        case "resource" | "containerResource":
            shares = {"averageValue", "averageUtilization"}
            if not present & shares:
                yield required_error(
                    f"{path}.averageUtilization", "must set either a target raw value or a target utilization"
                )
            if present >= shares:
                yield forbidden(f"{path}.averageValue", "may not set both a target raw value and a target utilization")
        case "pods":
            if not _is_positive(target.get("averageValue")):
                yield required_error(f"{path}.averageValue", "must specify a positive target averageValue")
        case "object":
            if not present & {"value", "averageValue"}:
                yield required_error(f"{path}.averageValue", "must set either a target value or averageValue")
        case _:
            values = {"value", "averageValue"}
            if not present & values:
                text = "must set either a target value for metric or a per-pod target"
                yield required_error(f"{path}.averageValue", text)
            if present >= values:
                yield forbidden(f"{path}.value", "may not set both a target value for metric and a per-pod target")


def _validate_rules(rules: JSONObject, path: str) -> Iterator[FieldError]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > LONGEST_WINDOW:
        text = f"must be less than or equal to {LONGEST_WINDOW}"
        yield invalid(f"{path}.stabilizationWindowSeconds", window, text)
    if rules["selectPolicy"] not in SELECT:
        yield not_supported(f"{path}.selectPolicy", rules["selectPolicy"], SELECT)
    if not rules["policies"]:
        yield required_error(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules["policies"]):
        yield from _validate_policy(policy, f"{path}.policies[{index}]")
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.parse(tolerance) < quantity.ZERO:
        yield invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0")


def _validate_policy(policy: JSONObject, path: str) -> Iterator[FieldError]:
    if policy["type"] not in POLICIES:
        yield not_supported(f"{path}.type", policy["type"], POLICIES)
    if policy["value"] <= 0:
        yield invalid(f"{path}.value", policy["value"], "must be greater than zero")
    period = policy["periodSeconds"]
    if period <= 0:
        yield invalid(f"{path}.periodSeconds", period, "must be greater than zero")
    if period > LONGEST_PERIOD:
        yield invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {LONGEST_PERIOD}")


def _is_positive(value: JSON) -> bool:
    return value is not None and quantity.parse(value) > quantity.ZERO
