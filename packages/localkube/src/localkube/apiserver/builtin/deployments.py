"""Defines Deployments, ReplicaSets and PodDisruptionBudgets."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import intstr, resources
from kuberuntime.objects.field import FieldError, invalid, not_supported
from kuberuntime.objects.gotypes import defaults
from kuberuntime.objects.intstr import IntOrString
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules import pod_defaults
from kuberuntime.objects.podrules.values import forbidden, validate_immutable, validate_minimum, validate_selector
from localkube.apiserver.builtin.statefulsets import validate_selector_and_template
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.model.kind import ScalePaths
from localkube.apiserver.types.typed import SERVED

STRATEGY_TYPES: Final = ("Recreate", "RollingUpdate")
PERCENT_TEXT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)


def default_template(obj: JSONObject) -> None:
    """Set the defaults of the pod template."""
    pod_defaults.default_spec(obj["spec"]["template"]["spec"])


def default_deployment(deployment: JSONObject) -> None:
    """Set the defaults of the strategy and of the pod template."""
    strategy = deployment["spec"]["strategy"]
    if strategy["type"] == "RollingUpdate":
        defaults.fill(SERVED, "RollingUpdateDeployment", strategy.setdefault("rollingUpdate", {}))
    default_template(deployment)


def validate_replica_set(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a ReplicaSet or of a change to it."""
    spec = new["spec"]
    if old is not None:
        yield from validate_immutable(spec["selector"], old["spec"]["selector"], "spec.selector")
    yield from _validate_counts(spec, "replicas", "minReadySeconds")
    yield from validate_selector_and_template(spec, "ReplicaSet", spec["template"])


def validate_deployment(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a Deployment or of a change to it."""
    spec = new["spec"]
    if old is not None:
        yield from validate_immutable(spec["selector"], old["spec"]["selector"], "spec.selector")
    yield from _validate_counts(spec, "replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    yield from validate_selector_and_template(spec, "Deployment", spec["template"])
    yield from _validate_strategy(spec["strategy"])
    deadline = spec["progressDeadlineSeconds"]
    if deadline <= spec.get("minReadySeconds", 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _validate_counts(spec: JSONObject, *fields: str) -> Iterator[FieldError]:
    for field in fields:
        yield from validate_minimum(spec.get(field, 0), 0, f"spec.{field}")


def _validate_strategy(strategy: JSONObject) -> Iterator[FieldError]:
    rolling: JSONObject | None = strategy.get("rollingUpdate")
    path = "spec.strategy.rollingUpdate"
    match strategy["type"]:
        case "Recreate":
            if rolling is not None:
                yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
        case "RollingUpdate" if rolling is not None:
            unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
            yield from _validate_bound(unavailable, f"{path}.maxUnavailable")
            yield from _validate_bound(surge, f"{path}.maxSurge")
            if _is_zero(unavailable) and _is_zero(surge):
                yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
            if intstr.exceeds_whole(unavailable):
                yield invalid(f"{path}.maxUnavailable", unavailable, "must not be greater than 100%")
        case other:
            yield not_supported("spec.strategy.type", other, STRATEGY_TYPES)


def _validate_bound(value: IntOrString, path: str) -> Iterator[FieldError]:
    if isinstance(value, int):
        yield from validate_minimum(value, 0, path)
    elif not intstr.is_percent(value):
        yield invalid(path, value, PERCENT_TEXT)


def _is_zero(value: IntOrString) -> bool:
    return value == 0 or intstr.percent(value) == 0


SCALE: Final = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")

DEPLOYMENT = Strategy(
    resource=resources.DEPLOYMENTS,
    struct="Deployment",
    description="A Deployment runs identical pods, and replaces them when the pod template changes.",
    default=default_deployment,
    validate=validate_deployment,
    generation="spec and annotations",
    has_status=True,
    short_names=("deploy",),
    categories=("all",),
    scale=SCALE,
)

REPLICA_SET = Strategy(
    resource=resources.REPLICA_SETS,
    struct="ReplicaSet",
    description="A ReplicaSet runs a number of identical pods.",
    default=default_template,
    validate=validate_replica_set,
    generation="spec",
    has_status=True,
    short_names=("rs",),
    categories=("all",),
    scale=SCALE,
)


ALWAYS_ALLOW: Final = "AlwaysAllow"
POLICIES: Final = (ALWAYS_ALLOW, "IfHealthyBudget")


def validate(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a PodDisruptionBudget."""
    spec = new["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field, 0)
        yield from _validate_bound(value, f"spec.{field}")
        if intstr.exceeds_whole(value):
            yield invalid(f"spec.{field}", value, "must not be greater than 100%")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, POLICIES)
    yield from validate_selector(spec.get("selector"), "spec.selector")


POD_DISRUPTION_BUDGET = Strategy(
    resource=resources.POD_DISRUPTION_BUDGETS,
    struct="PodDisruptionBudget",
    description="A PodDisruptionBudget limits the number of selected pods that evictions can make unavailable.",
    validate=validate,
    generation="spec",
    has_status=True,
    short_names=("pdb",),
)
