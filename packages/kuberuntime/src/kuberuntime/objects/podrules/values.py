"""Validates single values of many kinds, and returns the same errors as kube-apiserver."""

from collections.abc import Collection, Iterator

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, Kind, all_invalid, invalid, not_supported, required_error
from kuberuntime.objects.meta import JSON, JSONObject

MAX_PORT = 65535


def duplicate(path: str, value: JSON) -> FieldError:
    """Build the error for a duplicate value."""
    return FieldError(Kind.DUPLICATE, path, value)


def forbidden(path: str, detail: str) -> FieldError:
    """Build the error for a value that must not be set."""
    return FieldError(Kind.FORBIDDEN, path, detail=detail)


def not_found(path: str, value: JSON) -> FieldError:
    """Build the error for a reference to an object that does not exist."""
    return FieldError(Kind.NOT_FOUND, path, value)


def validate_choice(value: JSON, allowed: Collection[str], path: str) -> Iterator[FieldError]:
    """Yield an error if the value is not one of the supported values."""
    if value not in allowed:
        yield not_supported(path, value, sorted(allowed))


def validate_minimum(value: int, least: int, path: str) -> Iterator[FieldError]:
    """Yield an error if the number is too small."""
    if value < least:
        yield invalid(path, value, f"must be greater than or equal to {least}")


def validate_immutable(new: JSON, old: JSON, path: str) -> Iterator[FieldError]:
    """Yield an error if the value changed."""
    if new != old:
        yield invalid(path, new, "field is immutable")


def port_errors(port: int) -> list[str]:
    """Return the errors of a port number."""
    return [] if 1 <= port <= MAX_PORT else [f"must be between 1 and {MAX_PORT}, inclusive"]


def validate_port(port: int, path: str) -> Iterator[FieldError]:
    """Yield an error if the number is not a valid port."""
    yield from all_invalid(path, port, port_errors(port))


def validate_selector(selector: JSONObject | None, path: str) -> Iterator[FieldError]:
    """Yield the errors of a label selector object."""
    if selector is None:
        return
    yield from names.label_errors(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from _validate_expression(expression, f"{path}.matchExpressions[{index}]")


def _validate_expression(expression: JSONObject, path: str) -> Iterator[FieldError]:
    values = expression.get("values") or []
    match expression["operator"]:
        case "In" | "NotIn":
            if not values:
                yield required_error(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case other:
            yield invalid(f"{path}.operator", other, "not a valid selector operator")
    yield from all_invalid(f"{path}.key", expression["key"], names.label_key(expression["key"]))
    for index, value in enumerate(values):
        yield from all_invalid(f"{path}.values[{index}]", value, names.label_value(value))
