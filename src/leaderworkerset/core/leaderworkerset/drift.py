"""Whether a live object already equals the result of a server-side apply, so that nothing needs to be sent.

In: a live object with its `managedFields`, and the object that would be applied. Two conditions are checked: the live
object holds every value that would be applied, and no earlier apply of the same manager set a field that is missing now.
The object alone answers both. So nothing has to be remembered, a restart costs no write, and changes of others are
corrected. In doubt the answer is "apply": an apply that changes nothing has no effect.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject

ABSENT: Final = object()


def covers(live: JSON, desired: JSON) -> bool:
    """Return whether `live` has every value of `desired`, and lists are equally long; an absent value equals an empty one.

    >>> covers({"a": 1, "b": [{"c": 2, "default": 3}]}, {"a": 1, "b": [{"c": 2}], "d": {}})
    True
    >>> covers({"b": [1, 2]}, {"b": [1]})
    False
    """
    if live is None:
        return desired is None or desired in ({}, [], "")
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(covers(live.get(name), value) for name, value in desired.items())
    if isinstance(desired, list):
        return isinstance(live, list) and len(live) == len(desired) and _covers_items(live, desired)
    return bool(live == desired)


def _covers_items(live: list[JSON], desired: list[JSON]) -> bool:
    """Compare one by one only what is not equal, which C finds out."""
    return live == desired or all(map(covers, live, desired))


def owns_more(live: JSONObject, manager: str, desired: JSONObject) -> bool:
    """Return whether the manager's last apply set a field that `desired` lacks, or whether there was no such apply."""
    fields = applied_fields(live, manager)
    return fields is None or _names_more(fields, desired)


def applied_fields(live: JSONObject, manager: str) -> JSONObject | None:
    """Return the fields that the manager's last apply set, as FieldsV1; None where there was no such apply."""
    entries: list[JSONObject] = meta.metadata(live).get("managedFields") or []
    return next((entry.get("fieldsV1") for entry in entries if _is_apply_of(entry, manager)), None)


def _is_apply_of(entry: JSONObject, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def _names_more(fields: Mapping[str, Any], value: JSON) -> bool:
    """Return whether a set of fields (FieldsV1) names one that the value does not have."""
    items = _Items(value) if isinstance(value, list) else None
    for element, below in fields.items():
        if element == ".":
            continue
        child = _member(element, value) if items is None else items.find(element)
        if child is ABSENT or (below and _names_more(below, child)):
            return True
    return False


def _member(element: str, value: JSON) -> JSON:
    """Follow `f:`, the element of a path that names a field."""
    kind, _, name = element.partition(":")
    return value.get(name, ABSENT) if kind == "f" and isinstance(value, dict) else ABSENT


class _Items:
    """The items of one list, found by the elements of a path: `k:` by their keys, `v:` by their value.

    An item may lack keys to which the API server gave a default (`protocol: TCP`). The items are indexed once for each set
    of keys that elements name. A list has one such set, of one or two keys; further sets count as absent, so that no
    managedFields of any client cause a search of all items per element.
    """

    MOST_KEYS: Final = 2
    MOST_SETS: Final = 4

    def __init__(self, items: list[JSON]) -> None:
        self._items = items
        self._values: dict[bytes, JSON] | None = None
        self._by_keys: dict[tuple[str, ...], _Filed] = {}

    def find(self, element: str) -> JSON:
        """Return the item that the element names."""
        kind, _, text = element.partition(":")
        try:
            wanted = msgspec.json.decode(text) if kind in {"k", "v"} else None
        except msgspec.DecodeError:
            return ABSENT
        if kind == "v":
            return self._find_value(wanted)
        return self._find_by_keys(wanted) if isinstance(wanted, dict) else ABSENT

    def _find_value(self, wanted: JSON) -> JSON:
        if self._values is None:
            self._values = {_encoded(item): item for item in self._items}
        return self._values.get(_encoded(wanted), ABSENT)

    def _find_by_keys(self, wanted: JSONObject) -> JSON:
        names = tuple(sorted(wanted))
        if names not in self._by_keys:
            if len(names) > self.MOST_KEYS or len(self._by_keys) == self.MOST_SETS:
                return ABSENT
            self._by_keys[names] = _Filed(names, self._items)
        return self._by_keys[names].find(wanted)


class _Filed:
    """Items indexed by their values of some keys; those that lack some of the keys are indexed by the others."""

    def __init__(self, names: tuple[str, ...], items: list[JSON]) -> None:
        self._by_present: dict[tuple[str, ...], dict[bytes, tuple[int, JSON]]] = {}
        for position, item in enumerate(items):
            if isinstance(item, dict):
                present = tuple(name for name in names if name in item)
                filed = self._by_present.setdefault(present, {})
                filed.setdefault(_values(item, present), (position, item))

    def find(self, wanted: JSONObject) -> JSON:
        """Return the item that has most of the wanted values and no others; of several, the first."""
        found = (
            (-len(present), *filed[values])
            for present, filed in self._by_present.items()
            if (values := _values(wanted, present)) in filed
        )
        return min(found, key=itemgetter(0, 1), default=(0, 0, ABSENT))[2]


def _values(item: JSONObject, names: tuple[str, ...]) -> bytes:
    return _encoded([item[name] for name in names])


def _encoded(value: JSON) -> bytes:
    """Return the same bytes for equal values, whatever the order of keys."""
    return msgspec.json.encode(value, order="sorted")
