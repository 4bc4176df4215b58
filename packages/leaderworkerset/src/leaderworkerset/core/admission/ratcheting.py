"""Rejects updates only for errors that they add to stored values (docs/adr/0029-stored-values.md).

The API server can store values that a webhook has not checked, because the scale subresource does not call webhooks and
the webhook may have been missing. Such a value must not block later updates, including updates by the manager itself.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from kuberuntime.objects.field import FieldError

T = TypeVar("T")

Check: TypeAlias = Callable[[T, T | None], Sequence[FieldError]]
"""Returns all errors of an object. If the second argument is the stored object, include errors of the change."""


def new_errors(check: Check[T], new: T, old: T | None) -> list[FieldError]:
    """Return all errors of a new object, or only the additional errors of an update if `old` is specified."""
    errors = list(check(new, old))
    if old is None or not errors:
        return errors
    known = set(map(str, check(old, old)))
    return [error for error in errors if str(error) not in known]
