"""The round trip of a JSON value through Go's typed structs, and the bytes Go would write (R-REV-6).

Revisions are compared byte for byte with those of the Go controller, and pod templates arrive at StatefulSets as Go
would send them. Decoding into a struct and encoding it again drops unknown fields and zero values of `omitempty`
fields, keeps zero values behind pointers, always emits structs and quantities that are no pointers, and writes
quantities in canonical form. `gotypes.json` holds, per Go type, the JSON fields with their types in Go's notation:
`*int32,omitempty`, `[]Container`, `map[string]quantity`.

In: a type name and a JSON value. Out: the value as Go would write it, or `GoTypeError` naming the field that has the
wrong type. The table is read and compiled at first use, type by type.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import msgspec

from kuberuntime.objects import quantity
from kuberuntime.objects.field import FieldError, Kind
from kuberuntime.objects.meta import JSON, JSONObject

Convert: TypeAlias = Callable[[JSON, str], JSON]
"""Decode a value that is not a null pointer into a Go type and encode it again; null is Go's zero value."""

MAX_EXACT_INTEGER = 2**53
EMPTIABLE = ("string", "bool", "int32", "int64", "[]", "map[")
"""Prefixes of the types that `omitempty` can drop; structs, quantities and times have no empty value."""


class GoTypeError(ValueError):
    """A value does not fit its Go type; `error` names the field."""

    def __init__(self, path: str, value: JSON, expected: str) -> None:
        self.error = FieldError(Kind.TYPE_INVALID, path, value, f"must be {expected}")
        super().__init__(str(self.error))


@dataclass(frozen=True, slots=True)
class Declaration:
    """A field as a Go struct declares it: its type without the pointer mark, and the options of its JSON tag."""

    go_type: str
    pointer: bool
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class GoField:
    """One field of a Go struct: how to convert it, and what its absence becomes."""

    convert: Convert
    pointer: bool
    drops_empty: bool
    drops_zero: bool

    @property
    def always_present(self) -> bool:
        """Return whether the field is on the wire even when nothing was set."""
        return not (self.drops_empty or self.drops_zero)


def round_trip(type_name: str, value: JSON, path: str = "") -> JSON:
    """Return `value` as Go writes it after reading it into `type_name`; `path` is where the value stands, for errors.

    >>> round_trip("Container", {"name": "c", "image": "", "resources": None, "unknown": 1})
    {'name': 'c', 'resources': {}}
    """
    return _converter(type_name)(value, path)


def declarations(struct: str) -> dict[str, Declaration]:
    """Return the fields of a Go struct in declaration order.

    >>> declarations("EmptyDirVolumeSource")["sizeLimit"].go_type
    'quantity'
    """
    return {name: _declaration(*text.split(",")) for name, text in _table()[struct].items()}


def canonical_json(value: JSON) -> bytes:
    r"""Encode as Go encodes a generic map: compact, sorted keys, HTML characters escaped (R-REV-6.7 and 6.8).

    >>> canonical_json({"b": "<&>", "a": [1, None]})
    b'{"a":[1,null],"b":"\\u003c\\u0026\\u003e"}'
    """
    text = json.dumps(_through_float64(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.translate(_ESCAPES).encode()


_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def _through_float64(value: JSON) -> JSON:
    """Give integers that a float64 cannot hold the digits that Go prints for them."""
    if isinstance(value, dict):
        return {name: _through_float64(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_through_float64(child) for child in value]
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        return int(quantity.parse(repr(float(value))).fraction())
    return value


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, str]]:
    data = Path(__file__).with_name("gotypes.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, dict[str, str]])


def _declaration(go_type: str, *options: str) -> Declaration:
    return Declaration(go_type.removeprefix("*"), go_type.startswith("*"), frozenset(options))


@lru_cache(maxsize=256)
def _converter(go_type: str) -> Convert:
    if go_type in _SCALARS:
        return _SCALARS[go_type]
    if go_type.startswith("[]"):
        return _list_converter(go_type.removeprefix("[]"))
    if go_type.startswith("map["):
        return _map_converter(go_type.removeprefix("map[string]"))
    if go_type not in _table():
        raise KeyError(f"no Go type {go_type!r} is recorded in gotypes.json")
    return _struct_converter(go_type)


@lru_cache(maxsize=256)
def _fields(struct: str) -> dict[str, GoField]:
    return {name: _field(declaration) for name, declaration in declarations(struct).items()}


def _field(declaration: Declaration) -> GoField:
    can_be_empty = declaration.pointer or declaration.go_type.startswith(EMPTIABLE)
    return GoField(
        convert=_converter(declaration.go_type),
        pointer=declaration.pointer,
        drops_empty="omitempty" in declaration.options and can_be_empty,
        drops_zero="omitzero" in declaration.options,
    )


def _struct_converter(struct: str) -> Convert:
    def convert(value: JSON, path: str) -> JSONObject:
        fields = _fields(struct)
        given = _expect(value if value is not None else {}, dict, path, "an object")
        result = {
            name: child
            for name, raw in given.items()
            if name in fields
            for child in (_convert_field(fields[name], raw, _join(path, name)),)
            if child is not _DROPPED
        }
        for name, field in fields.items():
            if field.always_present and name not in result:
                result[name] = _convert_field(field, None, _join(path, name))
        return result

    return convert


_DROPPED = object()


def _convert_field(field: GoField, raw: JSON, path: str) -> JSON:
    if field.pointer:
        if raw is None:
            return _DROPPED if field.drops_empty else None
        return field.convert(raw, path)
    value = field.convert(raw, path)
    if (field.drops_empty and not value) or (field.drops_zero and value is None):
        return _DROPPED
    return value


def _list_converter(item_type: str) -> Convert:
    def convert(value: JSON, path: str) -> JSON:
        if value is None:
            return None
        item = _converter(item_type)
        return [item(child, f"{path}[{i}]") for i, child in enumerate(_expect(value, list, path, "a list"))]

    return convert


def _map_converter(item_type: str) -> Convert:
    def convert(value: JSON, path: str) -> JSON:
        if value is None:
            return None
        item = _converter(item_type)
        return {key: item(child, f"{path}[{key}]") for key, child in _expect(value, dict, path, "an object").items()}

    return convert


def _string(value: JSON, path: str) -> JSON:
    return "" if value is None else _expect(value, str, path, "a string")


def _bool(value: JSON, path: str) -> JSON:
    return False if value is None else _expect(value, bool, path, "true or false")


def _integer(bits: int) -> Convert:
    limit = 2 ** (bits - 1)

    def convert(value: JSON, path: str) -> JSON:
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
            raise GoTypeError(path, value, f"an integer of {bits} bits")
        return value

    return convert


def _int_or_string(value: JSON, path: str) -> JSON:
    return value if isinstance(value, str) else _SCALARS["int32"](value, path)


def _quantity(value: JSON, path: str) -> JSON:
    if value is None:
        return "0"
    try:
        return quantity.canonical(value)
    except quantity.QuantityError as error:
        raise GoTypeError(path, value, str(error).removeprefix("must be ")) from error


def _time(value: JSON, path: str) -> JSON:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(_expect(value, str, path, "a time"))
        in_utc = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise GoTypeError(path, value, "a time like 2026-01-31T12:00:00Z") from error
    if moment.tzinfo is None:
        raise GoTypeError(path, value, "a time with its zone, like 2026-01-31T12:00:00Z")
    return in_utc.strftime("%Y-%m-%dT%H:%M:%SZ")


def _raw(value: JSON, _path: str) -> JSON:
    return value


_SCALARS: dict[str, Convert] = {
    "string": _string,
    "bool": _bool,
    "int32": _integer(32),
    "int64": _integer(64),
    "int-or-string": _int_or_string,
    "quantity": _quantity,
    "time": _time,
    "raw": _raw,
}


def _expect(value: JSON, wanted: type, path: str, expected: str) -> JSON:
    if not isinstance(value, wanted):
        raise GoTypeError(path, value, expected)
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
