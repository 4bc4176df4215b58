"""Parses and formats scalars with a special syntax (quantities, times, base64) like Go.

Each type is a marker class that msgspec passes to `decode`. The value is the canonical text.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON

QUANTITY_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
QUANTITY_TEXT: Final = f"quantities must match the regular expression '{QUANTITY_PATTERN}'"
MOMENT = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d"
"""Matches canonical timestamps whose day is 1 to 28."""

SECONDS = re.compile(MOMENT + "Z", re.ASCII)
MICROSECONDS = re.compile(MOMENT + r"\.\d{6}Z", re.ASCII)


LAYOUT = (
    ("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"), ("15", r"\d\d"), (":", ":"),
    ("04", r"\d\d"), (":", ":"), ("05", r"\d\d([.,]\d+)?"), ("Z07:00", r"Z|[+-]\d\d:\d\d"),
)  # fmt: skip
"""The elements of Go's time layout, with a pattern for each element."""

RANGES = {"01": ("month", 12), "02": ("day", 31), "15": ("hour", 23), "04": ("minute", 59), "05": ("second", 59)}


class Scalar:
    """A scalar in canonical form."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class QuantityText(Scalar):
    """A resource quantity, which is stored in canonical form. For example, `0.5` becomes `500m` (R-REV-6.6)."""


class Time(Scalar):
    """A UTC time in whole seconds."""


class MicroTime(Scalar):
    """A UTC time in microseconds."""


class Base64(Scalar):
    """A byte string in base64 encoding."""


class Amounts(dict[str, str]):
    """A map of resource quantities. It is decoded as a whole, because templates contain similar maps."""

    __slots__ = ()


FEW: Final = 4
"""The maximum number of quantities in a cached map."""

REMEMBERED: Final = 1024
"""The maximum number of cached quantities and small maps. Objects contain only a few different values."""

SHORT: Final = 256
"""The maximum number of characters of a cached quantity. Long quantities can therefore not exhaust the memory."""

NO_AMOUNTS: Final = Amounts()
"""The shared value of all empty maps, so that msgspec recognizes the default."""

KINDS: Final = (QuantityText, Time, MicroTime, Base64)

_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

ANNOTATIONS: Final[dict[str, Any]] = {
    "string": str,
    "bool": bool,
    "int32": _INT32,
    "int64": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "int-or-string": _INT32 | str,
    "quantity": QuantityText,
    "time": Time,
    "microtime": MicroTime,
    "bytes": Base64,
    "raw": Any,
}


def decode(kind: type[Any], value: Any) -> Scalar | Amounts:
    """Decode a scalar, or a map of quantities, for msgspec."""
    if kind is Amounts:
        return _decode_amounts(value)
    if kind is QuantityText and type(value) is str and len(value) <= SHORT:
        return _quantity_text(value)
    return read(kind, value)


def read(kind: type[Any], value: Any) -> Scalar:
    """Parse a scalar. The `ValueError` contains a message for users."""
    if kind is QuantityText:
        return QuantityText(_format_quantity(value))
    if not isinstance(value, str):
        raise ValueError(f"expected a string, got {value!r}")  # noqa: TRY004  msgspec adds the path to a ValueError
    if kind is Time:
        return Time(value if SECONDS.fullmatch(value) else _parse_time(value).strftime("%Y-%m-%dT%H:%M:%SZ"))
    if kind is MicroTime:
        return MicroTime(
            value if MICROSECONDS.fullmatch(value) else _parse_time(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        )
    return Base64(_parse_base64(value))


def encode(value: Any) -> str:
    """Return the canonical form."""
    try:
        text: str = value.text
    except AttributeError:
        raise TypeError(f"{type(value).__name__} is not a scalar of JSON") from None
    return text


@lru_cache(maxsize=REMEMBERED)
def _quantity_text(text: str) -> QuantityText:
    """Parse a quantity. The result is cached and must not be modified."""
    return QuantityText(_format_quantity(text))


def _format_quantity(value: Any) -> str:
    try:
        return quantity.canonical(value)
    except quantity.QuantityError as error:
        raise ValueError(QUANTITY_TEXT) from error


def _decode_amounts(value: Any) -> Amounts:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {value!r}")  # noqa: TRY004  as above
    if len(value) > FEW:
        return _read_amounts(value)
    names_and_amounts = (*value, *value.values())
    try:
        is_short = len("".join(names_and_amounts)) <= SHORT
    except TypeError:  # a number, or an invalid quantity
        is_short = False
    return _few_amounts(*names_and_amounts) if is_short else _read_amounts(value)


@lru_cache(maxsize=REMEMBERED)
def _few_amounts(*names_and_amounts: str) -> Amounts:
    """Parse the resource quantities of a container or claim with a cache. Each encoded map is a new object."""
    number = len(names_and_amounts) // 2
    amounts = dict(zip(names_and_amounts[:number], names_and_amounts[number:], strict=True))
    return _read_amounts(amounts) if amounts else NO_AMOUNTS


def _read_amounts(value: Mapping[str, JSON]) -> Amounts:
    try:
        return Amounts(quantity.canonical_list(value))
    except quantity.QuantityError as error:
        raise ValueError(QUANTITY_TEXT) from error


def _parse_time(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(_syntax_error(value)) from error
    if moment.tzinfo is None:
        raise ValueError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"')
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": out of range') from error


def _syntax_error(value: str) -> str:
    """Return Go's error for an invalid time, which contains the first part that is malformed or out of range.

    >>> _syntax_error("yesterday")
    'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'
    >>> _syntax_error("2026-13-01T00:00:00Z")
    'parsing time "2026-13-01T00:00:00Z": month out of range'
    """
    rest, numbers = value, []
    for part, pattern in LAYOUT:
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            return f'parsing time "{value}" as "{"".join(piece for piece, _ in LAYOUT)}": cannot parse "{rest}" as "{part}"'
        numbers += [int(match[0][:2])] if part in RANGES else []
        rest = rest[match.end() :]
    if rest:
        return f'parsing time "{value}": extra text: "{rest}"'
    wrong = (name for (name, most), number in zip(RANGES.values(), numbers, strict=True) if number > most)
    return f'parsing time "{value}": {next(wrong, "day")} out of range'


def _parse_base64(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"illegal base64 data: {error}") from error
    return value
