"""Parses, formats, adds and compares resource quantities (`500m`, `1.5Gi`, `129e6`).

Values are exact. A quantity consists of an integer number of nano-units and its original format. The canonical form
(R-REV-6.6) has no fraction, has the largest suffix with which the value is an integer, and preserves the format:
binary (`1024Mi` becomes `1Gi`), decimal (`1000m` becomes `1`), or exponent (`129e6`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache, total_ordering

from kuberuntime.objects.meta import JSON

NANO_DIGITS = 9
NANOS = 10**9
"""The number of nano-units in one unit. Smaller values are rounded away from zero."""

CAP = (2**63 - 1) * NANOS
"""The maximum quantity for numbers with more than 18 digits."""

SHORT_DIGITS = 18
LONGEST_TEXT = 100
LARGEST_EXPONENT = 99

PATTERN = re.compile(
    r"(?P<sign>[+-]?)(?P<integer>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE](?P<exponent>[+-]?[0-9]+))?"
)

WHOLE = re.compile(r"([1-9][0-9]{0,5}+)(?:([KMGT]i)|[numkMGT])?+")
"""Matches canonical integers with a suffix, unless the next larger suffix divides them.

All values are below `CAP`.
"""

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
DECIMAL_SUFFIXES = {power: suffix for suffix, power in DECIMAL.items()}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
BINARY_SUFFIXES = ("", *BINARY)


class Notation(Enum):
    """The format of a quantity. Results of computations have the format of their input."""

    DECIMAL = "decimal"
    BINARY = "binary"
    EXPONENT = "exponent"


class QuantityError(ValueError):
    """The string is not a valid quantity."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact quantity. Comparisons ignore the format. Sums have the format of the left operand.

    >>> str(parse("0.5Gi") + parse("512Mi"))
    '1Gi'
    >>> parse("1000m") == parse("1")
    True
    """

    nanos: int
    notation: Notation = field(default=Notation.DECIMAL)

    def __str__(self) -> str:
        if self.nanos == 0:
            return "0"
        if self.notation is Notation.BINARY and abs(self.nanos) >= 1024 * NANOS and self.nanos % NANOS == 0:
            return _binary_text(self.nanos // NANOS)
        return _decimal_text(self.nanos, exponent=self.notation is Notation.EXPONENT)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nanos < other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: "Quantity") -> "Quantity":
        notation = self.notation if self.nanos else other.notation
        return Quantity(self.nanos + other.nanos, notation)

    def __neg__(self) -> "Quantity":
        return replace(self, nanos=-self.nanos)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self + -other

    def __mul__(self, times: int) -> "Quantity":
        return replace(self, nanos=self.nanos * times)

    def fraction(self) -> Fraction:
        """Return the value in units as an exact fraction."""
        return Fraction(self.nanos, NANOS)

    def ceil(self) -> int:
        """Return the value in whole units, rounded up."""
        return -(-self.nanos // NANOS)


ZERO = Quantity(0)


def parse(value: JSON) -> Quantity:
    """Parse a JSON quantity, which is a string, or a number from unquoted YAML."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError("must be a quantity: a number, or a string such as 500m, 2 or 1.5Gi")
    return _parse_text(str(value).strip())


def canonical(value: JSON) -> str:
    """Return the canonical form.

    >>> canonical("1.5Gi"), canonical(0.5), canonical("1000Ki")
    ('1536Mi', '500m', '1000Ki')
    """
    return _canonical_text(value) if isinstance(value, str) else str(parse(value))


def canonical_list(resources: Mapping[str, JSON]) -> dict[str, str]:
    """Return a resource list with each quantity in canonical form.

    >>> canonical_list({"cpu": "1000m", "memory": "1Gi"})
    {'cpu': '1', 'memory': '1Gi'}
    """
    return {name: canonical(amount) for name, amount in resources.items()}


@lru_cache(maxsize=4096)
def _canonical_text(text: str) -> str:
    """Return the canonical form. The result is cached, because objects contain few different quantities."""
    match = WHOLE.fullmatch(text)
    if match is not None and int(match[1]) % (1024 if match[2] else 1000):
        return text
    return str(parse(text))


def sum_quantities(quantities: Iterable[Quantity]) -> Quantity:
    """Return the sum of the quantities, or zero if there are no quantities."""
    return sum(quantities, ZERO)


def parse_list(resources: Mapping[str, JSON] | None) -> dict[str, Quantity]:
    """Parse a resource list (`limits`, `requests`, `capacity`). If it is absent or null, return an empty list."""
    return {name: parse(value) for name, value in (resources or {}).items()}


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Quantity:
    match = PATTERN.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if match is None or not (match["integer"] or match["fraction"]):
        raise QuantityError("must be a quantity such as 500m, 2, 1.5Gi or 1e3")
    integer, fraction = match["integer"], match["fraction"] or ""
    notation, multiple, power = _scale(match["suffix"] or "", match["exponent"])
    nanos = _times_power_of_ten(int(integer + fraction) * multiple, power - len(fraction))
    if notation is Notation.BINARY or len(integer.lstrip("0")) + len(fraction) > SHORT_DIGITS:
        nanos = min(nanos, CAP)
    return Quantity(-nanos if match["sign"] == "-" else nanos, notation)


def _scale(suffix: str, exponent: str | None) -> tuple[Notation, int, int]:
    """Return the number of nano-units in a suffix's unit, which is a multiple of a power of ten."""
    if exponent is not None:
        if abs(int(exponent)) > LARGEST_EXPONENT:
            raise QuantityError(f"must have an exponent from -{LARGEST_EXPONENT} to {LARGEST_EXPONENT}")
        return Notation.EXPONENT, 1, NANO_DIGITS + int(exponent)
    if suffix in BINARY:
        return Notation.BINARY, 1024 ** BINARY[suffix], NANO_DIGITS
    return Notation.DECIMAL, 1, NANO_DIGITS + DECIMAL[suffix]


def _times_power_of_ten(number: int, power: int) -> int:
    """Return a number times a power of ten, rounded up.

    >>> _times_power_of_ten(15, -1), _times_power_of_ten(15, 1)
    (2, 150)
    """
    factor: int = 10 ** abs(power)
    return number * factor if power >= 0 else -(-number // factor)


def _binary_text(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < len(BINARY):
        units //= 1024
        power += 1
    return f"{units}{BINARY_SUFFIXES[power]}"


def _decimal_text(nanos: int, *, exponent: bool) -> str:
    power = -9
    while nanos % 1000 == 0 and (exponent or power < DECIMAL["E"]):
        nanos //= 1000
        power += 3
    if exponent:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{DECIMAL_SUFFIXES[power]}"
