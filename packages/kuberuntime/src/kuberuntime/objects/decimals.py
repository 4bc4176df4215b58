"""Parses decimal integers in labels, annotations, names, arguments and records.

Python raises an error for more than 4,300 digits, and accepts any smaller integer. Because users choose the length of
an annotation, numbers are limited to 64 bits, as in Go and the API.
"""

import re
from typing import Final

HIGHEST: Final = 2**63 - 1
"""The maximum integer in Go's `strconv.Atoi` and in the API."""

_NATURAL: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def natural(text: str) -> int | None:
    """Parse decimal digits. Return None for other strings and for numbers with more than 63 bits.

    >>> natural("12"), natural("-1"), natural("1 "), natural("9" * 5000)
    (12, None, None, None)
    """
    number = int(text) if _NATURAL.fullmatch(text) else None
    return number if number is None or number <= HIGHEST else None


def integer(text: str) -> int | None:
    """Parse an integer with an optional sign. Return None for other strings and for numbers with more than 64 bits.

    >>> integer("+12"), integer("-1"), integer("1.0"), integer("-" + "9" * 5000)
    (12, -1, None, None)
    """
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is None or -HIGHEST - 1 <= number <= HIGHEST else None
