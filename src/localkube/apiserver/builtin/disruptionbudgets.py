"""PodDisruptionBudgets: how many pods of a selection evictions may take away at once."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import intstr, resources
from kuberuntime.objects.field import FieldError, invalid, not_supported
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.builtin.deployments import PERCENT_TEXT
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.validation.values import at_least, validate_selector

ALWAYS_ALLOW: Final = "AlwaysAllow"
POLICIES: Final = (ALWAYS_ALLOW, "IfHealthyBudget")


def validate(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a budget."""
    spec = new["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        yield from _validate_amount(spec.get(field, 0), f"spec.{field}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, POLICIES)
    yield from validate_selector(spec.get("selector"), "spec.selector")


def _validate_amount(value: int | str, path: str) -> Iterator[FieldError]:
    if isinstance(value, int):
        yield from at_least(value, 0, path)
    elif not intstr.is_percent(value):
        yield invalid(path, value, PERCENT_TEXT)
    elif intstr.exceeds_whole(value):
        yield invalid(path, value, "must not be greater than 100%")


POD_DISRUPTION_BUDGET = Strategy(
    resource=resources.POD_DISRUPTION_BUDGETS,
    struct="PodDisruptionBudget",
    description="A PodDisruptionBudget limits how many pods of a selection are away because they were evicted.",
    validate=validate,
    generation="spec",
    has_status=True,
    short_names=("pdb",),
)
