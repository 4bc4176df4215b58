"""Handles errors when one object is displayed, by displaying the error message instead. The functions are pure.

Objects can contain any values. Each set, rank, event and diagnosis is therefore read separately. An error in one
object neither stops a command nor hides the other objects.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from kuberuntime.objects import untrustedtext

T = TypeVar("T")

LONGEST: Final = 200
"""The maximum number of characters of a displayed error, which can quote the object."""


def attempt(read: Callable[[], T], instead: Callable[[str], T]) -> T:
    """Return the result of `read`. If it raises an error, call `instead` with the error message.

    >>> attempt(lambda: int("x"), str)
    "cannot be displayed: ValueError: invalid literal for int() with base 10: 'x'"
    """
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - edge: one object must not hide the others
        return instead(f"cannot be displayed: {describe(error)}")


def describe(error: Exception) -> str:
    r"""Return the type and message of an error as one line.

    >>> describe(ValueError("a\nb")), describe(RecursionError())
    ('ValueError: a b', 'RecursionError')
    """
    words = " ".join(untrustedtext.clean(str(error)[:LONGEST]).split())
    return f"{type(error).__name__}{': ' + words if words else ''}"
