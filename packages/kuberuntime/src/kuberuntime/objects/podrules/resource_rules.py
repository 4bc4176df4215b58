"""Validates the resource requests of a container, and returns the same errors as kube-apiserver."""

from collections.abc import Collection, Iterator

from kuberuntime.objects import names, quantity
from kuberuntime.objects.field import FieldError, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import not_found

STANDARD_RESOURCES = {"cpu", "memory", "ephemeral-storage"}


def validate_resources(resources: JSONObject, claims: Collection[str], where: str) -> Iterator[FieldError]:
    """Yield all errors. `claims` contains the resource claims of the pod."""
    for field in ("limits", "requests"):
        for name, amount in resources.get(field, {}).items():
            yield from _validate_name(name, f"{where}.{field}[{name}]")
            yield from _validate_amount(name, amount, f"{where}.{field}[{name}]")
    yield from _validate_relation(resources.get("limits", {}), resources.get("requests", {}), where)
    for index, claim in enumerate(resources.get("claims") or ()):
        if claim["name"] not in claims:
            yield not_found(f"{where}.claims[{index}]", claim["name"])


def _validate_name(name: str, where: str) -> Iterator[FieldError]:
    yield from all_invalid(where, name, names.qualified_name(name))
    if "/" not in name and name not in STANDARD_RESOURCES and not name.startswith("hugepages-"):
        yield invalid(where, name, "must be a standard resource type or fully qualified")
        yield invalid(where, name, "must be a standard resource for containers")


def _validate_amount(name: str, amount: str, where: str) -> Iterator[FieldError]:
    parsed = quantity.parse(amount)
    if parsed.nanos < 0:
        yield invalid(where, amount, "must be greater than or equal to 0")
    elif is_whole_only(name) and parsed.nanos % quantity.NANOS:
        yield invalid(where, amount, "must be an integer")


def _validate_relation(limits: JSONObject, requests: JSONObject, where: str) -> Iterator[FieldError]:
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit == amount:
            continue
        if limit is None and is_whole_only(name):
            yield required_error(f"{where}.limits", "Limit must be set for non overcommitable resources")
        elif limit is not None and is_whole_only(name):
            yield invalid(f"{where}.requests", amount, f"must be equal to {name} limit of {limit}")
        elif limit is not None and quantity.parse(limit) < quantity.parse(amount):
            yield invalid(f"{where}.requests", amount, f"must be less than or equal to {name} limit of {limit}")


def is_whole_only(name: str) -> bool:
    """Return whether the resource has integer units and is never overcommitted, such as devices and huge pages.

    >>> is_whole_only("nvidia.com/gpu"), is_whole_only("cpu")
    (True, False)
    """
    return name.startswith("hugepages-") or ("/" in name and "kubernetes.io/" not in name)
