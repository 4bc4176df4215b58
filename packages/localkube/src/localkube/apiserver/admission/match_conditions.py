"""Evaluates the match conditions of webhooks. Without CEL, only known expressions are supported."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import meta, names
from kuberuntime.objects.field import FieldError, all_invalid, not_supported, required_error
from kuberuntime.objects.meta import JSONObject

Condition: TypeAlias = Callable[[JSONObject | None], bool]
"""Returns whether the object of a request, which is None on DELETE, is sent to the webhook."""

NOT_DELETING: Final = "object == null || !has(object.metadata.deletionTimestamp)"

NEVER: Final = "false"


SUPPORTED: Final[Mapping[str, Condition]] = {
    NOT_DELETING: lambda obj: obj is None or not meta.is_deleting(obj),
    NEVER: lambda _: False,
}
"""The supported expressions, each with the function that evaluates it."""


def compile_conditions(webhook: JSONObject) -> tuple[Condition, ...]:
    """Return the validated match conditions of a webhook."""
    return tuple(SUPPORTED[condition["expression"]] for condition in webhook.get("matchConditions") or ())


def validate(webhook: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield the errors of the match conditions of a webhook."""
    for index, condition in enumerate(webhook.get("matchConditions") or ()):
        place = f"{path}.matchConditions[{index}]"
        name = condition.get("name") or ""
        if name:
            yield from all_invalid(f"{place}.name", name, names.qualified_name(name))
        else:
            yield required_error(f"{place}.name")
        if condition.get("expression") not in SUPPORTED:
            yield not_supported(f"{place}.expression", condition.get("expression"), SUPPORTED)
