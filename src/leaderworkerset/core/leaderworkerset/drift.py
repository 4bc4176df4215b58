"""Whether a live object already equals the result of a server-side apply, so that nothing needs to be sent.

In: a live object with its `managedFields`, and the object that would be applied. Two conditions are checked: the live
object holds every value that would be applied, and no earlier apply of the same manager set a field that is missing now.
The object alone answers both. So nothing has to be remembered, a restart costs no write, and changes of others are
corrected. In doubt the answer is "apply": an apply that changes nothing has no effect.
"""

from collections.abc import Sequence
from itertools import compress, repeat
from operator import is_not, ne
from typing import Final, TypeAlias

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.core.leaderworkerset import fieldsets

EMPTY: Final[tuple[JSON, ...]] = ({}, [], "", None)
"""What an API server may leave out."""

LEVELS: Final = 4
"""How many levels are compared field by field: the object and its metadata, of which caches keep parts, down to the spec of
its pod template. Below these are the lists of thousands of items."""

Pairs: TypeAlias = tuple[Sequence[JSON], Sequence[JSON]]
"""Values of the live object, and for each the one that would be applied."""


def covers(live: JSON, desired: JSON) -> bool:
    """Return whether `live` has every value of `desired`, and lists are equally long; an absent value equals an empty one.

    Of what is not equal all parts of one depth are compared at once: a server completes each of thousands of items.
    Labels, which come first, tell of a new revision before a template is compared.

    >>> covers({"a": 1, "b": [{"c": 2, "default": 3}]}, {"a": 1, "b": [{"c": 2}], "d": {}})
    True
    >>> covers({"b": [1, 2]}, {"b": [1]})
    False
    """
    return _covers(live, desired, LEVELS)


def _covers(live: JSON, desired: JSON, depth: int) -> bool:
    if depth and isinstance(live, dict) and isinstance(desired, dict) and _is_nested(desired):
        return all(_covers(live.get(name), value, depth - 1) for name, value in desired.items())
    found: Pairs | None = ([live], [desired])
    while found is not None:
        living, wanted = _differing(*found)
        if not wanted:
            return True
        found = _parts(living, wanted)
    return False


def _is_nested(value: JSONObject) -> bool:
    """Return whether an object holds others, unlike labels, of which there may be thousands."""
    return not {dict, list}.isdisjoint(map(type, value.values()))


def _differing(living: Sequence[JSON], wanted: Sequence[JSON]) -> Pairs:
    """Leave out what is equal, which C finds out, and empty values that are absent."""
    differ = list(map(ne, living, wanted))
    living, wanted = list(compress(living, differ)), list(compress(wanted, differ))
    if all(map(is_not, living, repeat(None))):
        return living, wanted
    counts = [one is not None or other not in EMPTY for one, other in zip(living, wanted, strict=True)]
    return list(compress(living, counts)), list(compress(wanted, counts))


def _parts(living: Sequence[JSON], wanted: Sequence[JSON]) -> Pairs | None:
    """Return the items of lists, and the fields of objects that the wanted ones have; None where values have no such parts."""
    ours: list[JSON] = []
    theirs: list[JSON] = []
    for one, other in zip(living, wanted, strict=True):
        if isinstance(other, dict) and isinstance(one, dict):
            ours += map(one.get, other)
            theirs += other.values()
        elif isinstance(other, list) and isinstance(one, list) and len(one) == len(other):
            ours += one
            theirs += other
        else:
            return None
    return ours, theirs


def owns_more(live: JSONObject, manager: str, desired: JSONObject) -> bool:
    """Return whether the manager's last apply set a field that `desired` lacks, or whether there was no such apply."""
    fields = applied_fields(live, manager)
    return fields is None or fieldsets.names_more(fields, desired)


def applied_fields(live: JSONObject, manager: str) -> JSONObject | None:
    """Return the fields that the manager's last apply set, as FieldsV1; None where there was no such apply."""
    entries: list[JSONObject] = meta.metadata(live).get("managedFields") or []
    return next((entry.get("fieldsV1") for entry in entries if _is_apply_of(entry, manager)), None)


def _is_apply_of(entry: JSONObject, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
