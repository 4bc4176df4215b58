"""Defines the HorizontalPodAutoscaler kind in autoscaling/v2."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Final

from kuberuntime.objects import names, resources
from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.validation import autoscaler_rules

HALF_BUSY: Final[JSONObject] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
"""The default metric of an autoscaler."""

DOUBLE: Final[JSONObject] = {"type": "Percent", "value": 100, "periodSeconds": 15}
FOUR: Final[JSONObject] = {"type": "Pods", "value": 4, "periodSeconds": 15}

RULES: Final[dict[str, JSONObject]] = {
    "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [FOUR, DOUBLE]},
    "scaleDown": {"selectPolicy": "Max", "policies": [DOUBLE]},
}
"""The default rules of a behavior. The controller sets the default window of `scaleDown`."""


def default_autoscaler(autoscaler: JSONObject) -> None:
    """Set the default metric, and the default rules of a behavior."""
    spec = autoscaler["spec"]
    if not spec.get("metrics"):
        spec["metrics"] = [deepcopy(HALF_BUSY)]
    behavior = spec.get("behavior")
    if behavior is not None:
        for way, rules in RULES.items():
            own_rules = {name: value for name, value in (behavior.get(way) or {}).items() if value is not None}
            behavior[way] = deepcopy(rules) | own_rules


def validate_autoscaler(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of an autoscaler."""
    return autoscaler_rules.validate(new["spec"], "spec")


AUTOSCALER = Strategy(
    resource=resources.HORIZONTAL_POD_AUTOSCALERS,
    struct="HorizontalPodAutoscaler",
    description="A HorizontalPodAutoscaler scales a workload based on the load of its pods.",
    default=default_autoscaler,
    validate=validate_autoscaler,
    name_rule=names.dns_1123_subdomain,
    has_status=True,
    short_names=("hpa",),
    categories=("all",),
)
