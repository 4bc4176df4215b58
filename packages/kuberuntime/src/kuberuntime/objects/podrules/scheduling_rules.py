"""Validates node selectors, affinity, tolerations, and topology spread constraints."""

from collections.abc import Iterator

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, all_invalid, invalid, not_supported, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import duplicate, forbidden, validate_choice, validate_selector

EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution"
MAX_WEIGHT = 100


def validate(spec: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield all errors of the scheduling fields."""
    if "nodeSelector" in spec:
        yield from names.label_errors(spec["nodeSelector"], f"{path}.nodeSelector")
    if "affinity" in spec:
        yield from _validate_affinity(spec["affinity"], f"{path}.affinity")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _validate_toleration(toleration, f"{path}.tolerations[{index}]")
    if "topologySpreadConstraints" in spec:
        yield from _validate_spreading(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")


def _validate_toleration(toleration: JSONObject, path: str) -> Iterator[FieldError]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "Equal")
    if key:
        yield from all_invalid(f"{path}.key", key, names.label_key(key))
    elif operator != "Exists":
        yield invalid(
            f"{path}.operator",
            toleration.get("operator", ""),
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        yield invalid(
            f"{path}.effect", toleration.get("effect", ""), "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )
    match operator:
        case "Equal" | "":
            value = toleration.get("value", "")
            yield from all_invalid(f"{path}.operator", value, names.label_value(value))
        case "Exists":
            if toleration.get("value"):
                yield invalid(
                    f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'"
                )
        case other:
            yield not_supported(f"{path}.operator", other, ("Equal", "Exists"))
    if toleration.get("effect"):
        yield from validate_choice(toleration["effect"], EFFECTS, f"{path}.effect")


def _validate_spreading(constraints: list[JSONObject], path: str) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        if constraint["maxSkew"] <= 0:
            yield invalid(f"{where}.maxSkew", constraint["maxSkew"], "must be greater than zero")
        if not constraint["topologyKey"]:
            yield required_error(f"{where}.topologyKey", "can not be empty")
        yield from validate_choice(constraint["whenUnsatisfiable"], UNSATISFIABLE, f"{where}.whenUnsatisfiable")
        pair = (constraint["topologyKey"], constraint["whenUnsatisfiable"])
        if pair in seen:
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)
        yield from validate_selector(constraint.get("labelSelector"), f"{where}.labelSelector")


def _validate_affinity(affinity: JSONObject, path: str) -> Iterator[FieldError]:
    if "nodeAffinity" in affinity:
        yield from _validate_node_affinity(affinity["nodeAffinity"], f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if name in affinity:
            yield from _validate_pod_affinity(affinity[name], f"{path}.{name}")


def _validate_node_affinity(affinity: JSONObject, path: str) -> Iterator[FieldError]:
    if REQUIRED_TERMS in affinity:
        terms = affinity[REQUIRED_TERMS]["nodeSelectorTerms"]
        where = f"{path}.{REQUIRED_TERMS}.nodeSelectorTerms"
        if not terms:
            yield required_error(where, "must have at least one node selector term")
        for index, term in enumerate(terms or ()):
            yield from _validate_node_term(term, f"{where}[{index}]")
    for index, preferred in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        where = f"{path}.{PREFERRED_TERMS}[{index}]"
        yield from _validate_weight(preferred["weight"], where)
        yield from _validate_node_term(preferred["preference"], f"{where}.preference")


def _validate_node_term(term: JSONObject, path: str) -> Iterator[FieldError]:
    for field in ("matchExpressions", "matchFields"):
        for index, requirement in enumerate(term.get(field) or ()):
            yield from _validate_requirement(requirement, f"{path}.{field}[{index}]")


def _validate_requirement(requirement: JSONObject, path: str) -> Iterator[FieldError]:
    values = requirement.get("values") or []
    match requirement["operator"]:
        case "In" | "NotIn" if not values:
            yield required_error(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist" if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt" if len(values) != 1:
            yield required_error(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case other if other not in NODE_OPERATORS:
            yield invalid(f"{path}.operator", other, "not a valid selector operator")
    yield from all_invalid(f"{path}.key", requirement["key"], names.label_key(requirement["key"]))


def _validate_pod_affinity(affinity: JSONObject, path: str) -> Iterator[FieldError]:
    for index, term in enumerate(affinity.get(REQUIRED_TERMS) or ()):
        yield from _validate_pod_term(term, f"{path}.{REQUIRED_TERMS}[{index}]")
    for index, preferred in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        where = f"{path}.{PREFERRED_TERMS}[{index}]"
        yield from _validate_weight(preferred["weight"], where)
        yield from _validate_pod_term(preferred["podAffinityTerm"], f"{where}.podAffinityTerm")


def _validate_pod_term(term: JSONObject, path: str) -> Iterator[FieldError]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from validate_selector(term.get(name), f"{path}.{name}")
    for namespace in term.get("namespaces") or ():
        yield from all_invalid(f"{path}.namespace", namespace, names.dns_1123_label(namespace))
    if not term["topologyKey"]:
        yield required_error(f"{path}.topologyKey", "can not be empty")
    yield from all_invalid(f"{path}.topologyKey", term["topologyKey"], names.label_key(term["topologyKey"]))


def _validate_weight(weight: int, path: str) -> Iterator[FieldError]:
    if not 1 <= weight <= MAX_WEIGHT:
        yield invalid(f"{path}.weight", weight, f"must be in the range 1-{MAX_WEIGHT}")
