"""Decodes JSON to a Go struct and encodes it again, like Go clients and the API server (R-REV-6).

This drops unknown fields and zero values of `omitempty` fields, but preserves zero values behind pointers. Structs
and quantities that are not pointers are always written. Quantities and times have canonical form. msgspec performs
this in one pass in C with generated structs, and returns a new tree that the caller can modify.

Input: a table of types, a type name and a JSON value. Output: the value as written by Go, or a `GoTypeError` with the
invalid field. Structs are generated when they are first used.
"""

from collections.abc import Callable
from functools import cache
from itertools import repeat
from typing import Any

import msgspec

from kuberuntime.objects.gotypes import scalars
from kuberuntime.objects.gotypes.declarations import GoField, GoTypes, element_type, type_shape
from kuberuntime.objects.gotypes.mismatch import GoTypeError, Mismatch, find_mismatch
from kuberuntime.objects.meta import JSON, JSONObject

ZEROES: dict[str, Any] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "int-or-string": 0, "quantity": scalars.QuantityText("0"),
    "bytes": None,
}  # fmt: skip
AMOUNTS = "map[string]quantity"
TIMES = {"time", "microtime"}
NEVER_EMPTY = {"int-or-string", "quantity"}
"""The scalars that are structs in Go, so that `omitempty` does not omit them."""

CONTAINERS: dict[str, type[list[Any] | dict[str, Any]]] = {"list": list, "map": dict}


def round_trip(types: GoTypes, struct: str, value: JSON, path: str = "") -> JSONObject:
    """Decode `value` to `struct` and encode it again like Go. `path` is its location, for error messages.

    >>> from kuberuntime.objects.gotypes.declarations import KUBERNETES
    >>> round_trip(KUBERNETES, "Container", {"name": "c", "image": "", "unknown": 1})
    {'name': 'c', 'resources': {}}
    """
    try:
        return _round_trip(types, struct, {} if value is None else value)
    except msgspec.ValidationError:
        # Null represents the zero value of its field. Because nulls are rare, only a second pass replaces them.
        try:
            return _round_trip(types, struct, _without_nulls(types, struct, value))
        except msgspec.ValidationError as error:
            mismatch = find_mismatch(types, struct, value, path)
            raise GoTypeError(mismatch or Mismatch(path, value, struct, struct, syntax=str(error))) from error


def _round_trip(types: GoTypes, struct: str, value: JSON) -> JSONObject:
    read = msgspec.convert(value, _compile(types.owner(struct), struct), dec_hook=scalars.decode)
    result: JSONObject = msgspec.to_builtins(read, enc_hook=scalars.encode)
    return result


@cache
def _compile(types: GoTypes, struct: str) -> type[msgspec.Struct]:
    """Generate the msgspec struct of a Go type from the table that declares it."""
    fields = [(name, _annotation(types, field), _default(types, field)) for name, field in types.fields(struct).items()]
    return msgspec.defstruct(struct, fields, kw_only=True, omit_defaults=True, gc=False)


def _annotation(types: GoTypes, field: GoField) -> Any:
    annotation = _type_annotation(types, field.type)
    return annotation | None if _accepts_null(field) else annotation


def _accepts_null(field: GoField) -> bool:
    """Return whether the zero value is null. Other types have non-null zero values."""
    if field.pointer or field.omit_zero or field.type in TIMES:
        return True
    return field.shape in CONTAINERS and not field.omit_empty


def _type_annotation(types: GoTypes, go_type: str) -> Any:
    element = element_type(go_type)
    match type_shape(go_type):
        case "list":
            return list[_type_annotation(types, element)]  # type: ignore[misc]  # a type made at run time
        case "map" if go_type == AMOUNTS:
            return scalars.Amounts
        case "map":
            return dict[str, _type_annotation(types, element)]  # type: ignore[misc]  # as above
        case "struct":
            return _compile(types.owner(go_type), go_type)
        case _:
            return scalars.ANNOTATIONS[go_type]


def _default(types: GoTypes, field: GoField) -> Any:
    """Return the default. Constant defaults are omitted in JSON, but defaults of a factory are always written."""
    if _accepts_null(field):
        is_struct = field.type in TIMES and not field.pointer
        return None if field.omit_zero or (field.omit_empty and not is_struct) else _always_written(None)
    if field.shape == "struct":
        return _always_written(_compile(types.owner(field.type), field.type)())
    if field.type == AMOUNTS:
        return scalars.NO_AMOUNTS
    if field.shape in CONTAINERS:
        return msgspec.field(default_factory=CONTAINERS[field.shape])
    zero = ZEROES[field.type]
    return zero if field.omit_empty and field.type not in NEVER_EMPTY else _always_written(zero)


def _always_written(value: Any) -> Any:
    """Return a default that is always written. It is a constant, so that msgspec does not execute Python code.

    All objects without the field share it, because decoded values are never modified, and encoded values are new
    objects.
    """
    factory: Callable[[], Any] = repeat(value).__next__
    return msgspec.field(default_factory=factory)


def _without_nulls(types: GoTypes, go_type: str, value: JSON) -> JSON:
    """Remove null fields from a value, and replace other nulls with the zero value."""
    element = element_type(go_type)
    match type_shape(go_type):
        case "list" if isinstance(value, list):
            return [_without_nulls(types, element, _zero_value(element) if item is None else item) for item in value]
        case "map" if isinstance(value, dict):
            return {
                key: _without_nulls(types, element, _zero_value(element) if item is None else item)
                for key, item in value.items()
            }
        case "struct" if isinstance(value, dict):
            fields = types.fields(go_type)
            return {
                name: _without_nulls(types, fields[name].type, item)
                for name, item in value.items()
                if name in fields and (item is not None or fields[name].type == "raw")
            }
        case _:
            return value


def _zero_value(go_type: str) -> JSON:
    match type_shape(go_type):
        case "struct" | "map":
            return {}
        case _:
            return "0" if go_type == "quantity" else "" if go_type == "bytes" else ZEROES.get(go_type)
