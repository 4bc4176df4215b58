"""The scalars of Go types. Those with a syntax of their own (quantities, times, base64) are read and written as Go does.

Each of these is a marker class that msgspec hands to `decode`; the value is the canonical text.
"""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec

from kuberuntime.objects import quantity

QUANTITY_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
MOMENT = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d"
"""What is in its canonical form, whatever the calendar says of the month's last days."""

SECONDS = re.compile(MOMENT + "Z", re.ASCII)
MICROSECONDS = re.compile(MOMENT + r"\.\d{6}Z", re.ASCII)


LAYOUT = (
    ("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"), ("15", r"\d\d"), (":", ":"),
    ("04", r"\d\d"), (":", ":"), ("05", r"\d\d([.,]\d+)?"), ("Z07:00", r"Z|[+-]\d\d:\d\d"),
)  # fmt: skip
"""The parts of a moment in Go's layout, and what fits each."""

RANGES = {"01": ("month", 12), "02": ("day", 31), "15": ("hour", 23), "04": ("minute", 59), "05": ("second", 59)}


class Scalar:
    """A canonical text."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class QuantityText(Scalar):
    """A resource quantity; `0.5` is kept as `500m` (R-REV-6.6)."""


class Time(Scalar):
    """A moment in whole seconds, UTC."""


class MicroTime(Scalar):
    """A moment in microseconds, UTC."""


class Base64(Scalar):
    """Bytes in base64."""


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


def decode(kind: type[Any], value: Any) -> Scalar:
    """Read a scalar; the text of a `ValueError` is the one a user sees."""
    if kind is QuantityText:
        return QuantityText(_quantity(value))
    if not isinstance(value, str):
        raise ValueError(f"expected a string, got {value!r}")  # noqa: TRY004  msgspec adds the path to a ValueError
    if kind is Time:
        return Time(value if SECONDS.fullmatch(value) else _moment(value).strftime("%Y-%m-%dT%H:%M:%SZ"))
    if kind is MicroTime:
        return MicroTime(value if MICROSECONDS.fullmatch(value) else _moment(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    return Base64(_base64(value))


def encode(value: Any) -> str:
    """Return the canonical text."""
    if not isinstance(value, Scalar):
        raise TypeError(f"{type(value).__name__} is not a scalar of JSON")
    return value.text


def _quantity(value: Any) -> str:
    try:
        return quantity.canonical(value)
    except quantity.QuantityError as error:
        raise ValueError(f"quantities must match the regular expression '{QUANTITY_PATTERN}'") from error


def _moment(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(_complaint(value)) from error
    if moment.tzinfo is None:
        raise ValueError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"')
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": out of range') from error


def _complaint(value: str) -> str:
    """Return what Go says of a text that is no moment: the first part that does not fit the layout, or is out of range.

    >>> _complaint("yesterday")
    'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'
    >>> _complaint("2026-13-01T00:00:00Z")
    'parsing time "2026-13-01T00:00:00Z": month out of range'
    """
    rest, numbers = value, []
    for part, pattern in LAYOUT:
        found = re.match(pattern, rest, re.ASCII)
        if found is None:
            return f'parsing time "{value}" as "{"".join(one for one, _ in LAYOUT)}": cannot parse "{rest}" as "{part}"'
        numbers += [int(found[0][:2])] if part in RANGES else []
        rest = rest[found.end() :]
    if rest:
        return f'parsing time "{value}": extra text: "{rest}"'
    wrong = (name for (name, most), number in zip(RANGES.values(), numbers, strict=True) if number > most)
    return f'parsing time "{value}": {next(wrong, "day")} out of range'


def _base64(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"illegal base64 data: {error}") from error
    return value
