"""Reads decimal integers from texts: labels, annotations, names, arguments and records.

Python refuses texts of more than 4,300 digits with an error, and computes with any smaller integer. Users choose the
length of an annotation, so a number has the limit of Go and the API: 64 bits.
"""

import re
from typing import Final

HIGHEST: Final = 2**63 - 1
"""The highest integer of Go's `strconv.Atoi` and of the API."""

_NATURAL: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def natural(text: str) -> int | None:
    """Return the number in a text of decimal digits, None for other texts and more than 63 bits.

    >>> natural("12"), natural("-1"), natural("1 "), natural("9" * 5000)
    (12, None, None, None)
    """
    number = int(text) if _NATURAL.fullmatch(text) else None
    return number if number is None or number <= HIGHEST else None


def integer(text: str) -> int | None:
    """Return the number in a text, which may have a sign, None for other texts and more than 64 bits.

    >>> integer("+12"), integer("-1"), integer("1.0"), integer("-" + "9" * 5000)
    (12, -1, None, None)
    """
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is None or -HIGHEST - 1 <= number <= HIGHEST else None
