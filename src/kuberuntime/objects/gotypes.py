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
import re
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

Convert: TypeAlias = Callable[[JSON], JSON]
"""Decode a value that is not a null pointer into a Go type and encode it again; null is Go's zero value."""

MAX_EXACT_INTEGER = 2**53
EMPTIABLE = ("string", "bool", "int32", "int64", "[]", "map[")
"""Prefixes of the types that `omitempty` can drop; structs, quantities and times have no empty value."""


class GoTypeError(ValueError):
    """A value does not fit its Go type; `error` names the field."""

    def __init__(self, path: str, value: JSON, expected: str) -> None:
        self.error = FieldError(Kind.TYPE_INVALID, path.removeprefix("."), value, f"must be {expected}")
        super().__init__(str(self.error))
        self._path = path
        self._expected = expected

    def within(self, parent: str) -> "GoTypeError":
        """Return the same error of a value that stands below `parent`: paths are made for errors only."""
        return GoTypeError(f"{parent}{self._path}", self.error.value, self._expected)


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
    try:
        return _converter(type_name)(value)
    except GoTypeError as error:
        raise error.within(path) from error.__cause__


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
    try:
        encoded = msgspec.json.encode(value, order="sorted")
    except OverflowError:  # an integer of more than 64 bits
        encoded = b""
    if not encoded or _may_hold_odd_numbers(encoded):
        encoded = msgspec.json.encode(_with_numbers_of_go(value), order="sorted")
    for char, escaped in _ESCAPES:
        encoded = encoded.replace(char, escaped)
    return encoded


_ESCAPES = [(char.encode(), b"\\u%04x" % ord(char)) for char in "<>&\u2028\u2029"]

_ODD_NUMBER = rb"-?[0-9]+(?:[0-9]{15}|[.eE])"
_ODD_NUMBERS = [re.compile(before + _ODD_NUMBER) for before in (rb"^", rb":", rb",", rb"\[")]
"""One pattern for each byte that a number can follow: a pattern with one beginning is searched for much faster."""


def _may_hold_odd_numbers(encoded: bytes) -> bool:
    """Return whether there may be a number with a fraction or more than 15 digits; a text may look like one."""
    return any(pattern.search(encoded) for pattern in _ODD_NUMBERS)


def _with_numbers_of_go(value: JSON) -> JSON:
    """Give numbers the digits to write: those that Go prints for an integer that a float64 cannot hold."""
    if isinstance(value, dict):
        return {name: _with_numbers_of_go(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_with_numbers_of_go(child) for child in value]
    if isinstance(value, float):
        return msgspec.Raw(json.dumps(value).encode())
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        return msgspec.Raw(str(int(quantity.parse(repr(float(value))).fraction())).encode())
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
def _fields(struct: str) -> tuple[dict[str, GoField], dict[str, GoField]]:
    """Return the fields of a struct, and those that are always present."""
    fields = {name: _field(declaration) for name, declaration in declarations(struct).items()}
    return fields, {name: field for name, field in fields.items() if field.always_present}


def _field(declaration: Declaration) -> GoField:
    can_be_empty = declaration.pointer or declaration.go_type.startswith(EMPTIABLE)
    return GoField(
        convert=_converter(declaration.go_type),
        pointer=declaration.pointer,
        drops_empty="omitempty" in declaration.options and can_be_empty,
        drops_zero="omitzero" in declaration.options,
    )


def _struct_converter(struct: str) -> Convert:
    def convert(value: JSON) -> JSONObject:
        fields, always = _fields(struct)
        result = {}
        for name, raw in _expect(value if value is not None else {}, dict, "an object").items():
            if name in fields:
                try:
                    child = _convert_field(fields[name], raw)
                except GoTypeError as error:
                    raise error.within(f".{name}") from error.__cause__
                if child is not _DROPPED:
                    result[name] = child
        for name, field in always.items():
            if name not in result:
                result[name] = _convert_field(field, None)
        return result

    return convert


_DROPPED = object()


def _convert_field(field: GoField, raw: JSON) -> JSON:
    if field.pointer:
        if raw is None:
            return _DROPPED if field.drops_empty else None
        return field.convert(raw)
    value = field.convert(raw)
    if (field.drops_empty and not value) or (field.drops_zero and value is None):
        return _DROPPED
    return value


def _list_converter(item_type: str) -> Convert:
    def convert(value: JSON) -> JSON:
        if value is None:
            return None
        item = _converter(item_type)
        result: list[JSON] = []
        try:
            for child in _expect(value, list, "a list"):
                result.append(item(child))  # noqa: PERF401 - its length is the index of the value that does not fit
        except GoTypeError as error:
            raise error.within(f"[{len(result)}]" if isinstance(value, list) else "") from error.__cause__
        return result

    return convert


def _map_converter(item_type: str) -> Convert:
    def convert(value: JSON) -> JSON:
        if value is None:
            return None
        item = _converter(item_type)
        result = {}
        for key, child in _expect(value, dict, "an object").items():
            try:
                result[key] = item(child)
            except GoTypeError as error:
                raise error.within(f"[{key}]") from error.__cause__
        return result

    return convert


def _string(value: JSON) -> JSON:
    return "" if value is None else _expect(value, str, "a string")


def _bool(value: JSON) -> JSON:
    return False if value is None else _expect(value, bool, "true or false")


def _integer(bits: int) -> Convert:
    limit = 2 ** (bits - 1)

    def convert(value: JSON) -> JSON:
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
            raise GoTypeError("", value, f"an integer of {bits} bits")
        return value

    return convert


def _int_or_string(value: JSON) -> JSON:
    return value if isinstance(value, str) else _SCALARS["int32"](value)


def _quantity(value: JSON) -> JSON:
    if value is None:
        return "0"
    try:
        return quantity.canonical(value)
    except quantity.QuantityError as error:
        raise GoTypeError("", value, str(error).removeprefix("must be ")) from error


def _time(value: JSON) -> JSON:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(_expect(value, str, "a time"))
        in_utc = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise GoTypeError("", value, "a time like 2026-01-31T12:00:00Z") from error
    if moment.tzinfo is None:
        raise GoTypeError("", value, "a time with its zone, like 2026-01-31T12:00:00Z")
    return in_utc.strftime("%Y-%m-%dT%H:%M:%SZ")


def _raw(value: JSON) -> JSON:
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


def _expect(value: JSON, wanted: type, expected: str) -> JSON:
    if not isinstance(value, wanted):
        raise GoTypeError("", value, expected)
    return value
