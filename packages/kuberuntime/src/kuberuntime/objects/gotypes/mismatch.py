"""Finds the first field whose value does not match its Go type, for error messages.

The round trip itself runs in C and reports few details. This code runs only after the round trip has failed.
"""

from typing import Any, Final

import msgspec

from kuberuntime.objects import quantity
from kuberuntime.objects.field import FieldError, Kind
from kuberuntime.objects.gotypes import scalars
from kuberuntime.objects.gotypes.declarations import GoTypes, element_type, type_shape
from kuberuntime.objects.meta import JSON

EXPECTED: Final = {
    "string": "a string",
    "bool": "true or false",
    "int32": "a 32-bit integer",
    "int64": "a 64-bit integer",
    "int-or-string": "a 32-bit integer or a string",
    "time": "a time with a time zone, such as 2026-01-31T12:00:00Z",
    "microtime": "a time with a time zone, such as 2026-01-31T12:00:00.000000Z",
    "bytes": "a base64 string",
}
CONTAINERS: Final = {"list": "a list", "map": "an object", "struct": "an object"}


class Mismatch(msgspec.Struct, frozen=True):
    """A value that does not match its type.

    `path` is for users and contains indexes and keys. `names` are the fields in the path, and `owner` declares the
    last one. `syntax` is Go's error for a string, or empty if the JSON type is invalid.
    """

    path: str
    value: JSON
    go_type: str
    owner: str = ""
    names: tuple[str, ...] = ()
    syntax: str = ""

    @property
    def expected(self) -> str:
        """Describe the valid values."""
        if self.go_type != "quantity":
            return EXPECTED.get(self.go_type) or CONTAINERS[type_shape(self.go_type)]
        try:
            return quantity.canonical(self.value)
        except quantity.QuantityError as error:
            return str(error).removeprefix("must be ")


class GoTypeError(ValueError):
    """A value does not match its Go type. `error` contains the field. `mismatch` contains the details."""

    def __init__(self, mismatch: Mismatch) -> None:
        self.mismatch = mismatch
        self.error = FieldError(Kind.TYPE_INVALID, mismatch.path, mismatch.value, f"must be {mismatch.expected}")
        super().__init__(str(self.error))


class _Place(msgspec.Struct, frozen=True):
    path: str
    owner: str
    names: tuple[str, ...] = ()

    def field(self, struct: str, name: str) -> "_Place":
        return _Place(f"{self.path}.{name}" if self.path else name, struct, (*self.names, name))

    def item(self, key: int | str) -> "_Place":
        return _Place(f"{self.path}[{key}]", self.owner, self.names)


def find_mismatch(types: GoTypes, struct: str, value: JSON, path: str) -> Mismatch | None:
    """Return the first field of `value` that does not match `struct`. Null matches every type."""
    return _find(types, struct, value, _Place(path, struct))


def _find(types: GoTypes, go_type: str, value: JSON, place: _Place) -> Mismatch | None:
    if value is None:
        return None
    shape, element = type_shape(go_type), element_type(go_type)
    match shape:
        case "list" if isinstance(value, list):
            mismatches = (_find(types, element, item, place.item(index)) for index, item in enumerate(value))
        case "map" if isinstance(value, dict):
            mismatches = (_find(types, element, item, place.item(key)) for key, item in value.items())
        case "struct" if isinstance(value, dict):
            fields = types.fields(go_type)
            mismatches = (
                _find(types, fields[name].type, item, place.field(go_type, name))
                for name, item in value.items()
                if name in fields
            )
        case _:
            syntax = _scalar_problem(go_type, value) if shape == "scalar" else ""
            return None if syntax is None else Mismatch(place.path, value, go_type, place.owner, place.names, syntax)
    return next((mismatch for mismatch in mismatches if mismatch is not None), None)


def _scalar_problem(go_type: str, value: JSON) -> str | None:
    """Return Go's error for a scalar, an empty string for an invalid JSON type, or None if the scalar is valid."""
    annotation: Any = scalars.ANNOTATIONS[go_type]
    if annotation in scalars.KINDS:
        try:
            scalars.decode(annotation, value)
        except ValueError as error:
            return str(error)
        return None
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return ""
    return None
