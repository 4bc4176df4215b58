"""Implements admission rules, and the ratcheting of updates (docs/adr/0029-stored-values.md).

An update is rejected only for errors that it adds.

The API server can store values that a webhook has not checked, because the scale subresource does not call webhooks and
the webhook may have been missing. Such a value must not block later updates, including updates by the manager itself.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from kuberuntime.objects.field import FieldError

T = TypeVar("T")

Check: TypeAlias = Callable[[T, T | None], Sequence[FieldError]]
"""Returns all errors of an object. If the second argument is the stored object, include errors of the change."""


class Rule(NamedTuple, Generic[T]):
    """An admission rule, with its numbers in the contract and the function that returns its errors.

    A test compares the numbers and the texts of all rules with the pages.
    """

    numbers: str
    find_errors: Callable[[T], Iterable[FieldError]]


def errors_of(rules: Iterable[Rule[T]], change: T) -> list[FieldError]:
    """Return the errors of all rules in order."""
    return [error for rule in rules for error in rule.find_errors(change)]


def new_errors(check: Check[T], new: T, old: T | None) -> list[FieldError]:
    """Return all errors of a new object, or only the additional errors of an update if `old` is specified."""
    errors = list(check(new, old))
    if old is None or not errors:
        return errors
    known = set(map(str, check(old, old)))
    return [error for error in errors if str(error) not in known]
