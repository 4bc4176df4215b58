"""The edge around one object that is shown: if it cannot be read, its error is shown in its place. Pure.

Anything may be stored in an object. So each set, rank, event and diagnosis is read behind this edge. An error in it neither
ends a command nor hides the other objects.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from kuberuntime.objects import untrustedtext

T = TypeVar("T")

LONGEST: Final = 200
"""The maximum characters of an error that is shown: it may quote the object."""


def attempt(read: Callable[[], T], instead: Callable[[str], T]) -> T:
    """Return the result of `read`; if it raises an error, return `instead` of a text about it.

    >>> attempt(lambda: int("x"), str)
    "cannot be shown: ValueError: invalid literal for int() with base 10: 'x'"
    """
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - edge: one object must not hide the others
        return instead(f"cannot be shown: {describe(error)}")


def describe(error: Exception) -> str:
    r"""Return the type and the message of an error on one line.

    >>> describe(ValueError("a\nb")), describe(RecursionError())
    ('ValueError: a b', 'RecursionError')
    """
    words = " ".join(untrustedtext.clean(str(error)[:LONGEST]).split())
    return f"{type(error).__name__}{': ' + words if words else ''}"
