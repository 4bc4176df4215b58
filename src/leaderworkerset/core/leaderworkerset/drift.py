"""Whether a live object already is what a server-side apply would make of it, so that nothing needs to be sent.

In: a live object with its `managedFields`, and the object that would be applied. Two questions are asked: does the live
object hold every value that would be applied, and did an earlier apply of the same manager set a field that would now
be given up? Both are answered from the object alone: nothing has to be remembered, a restart costs no write, and what
somebody else changed is put right. Where an answer is in doubt it is "apply": an apply that changes nothing is free of
consequences.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSON, JSONObject

ABSENT: Final = object()


def covers(live: JSON, desired: JSON) -> bool:
    """Tell whether `live` has every value of `desired`, and in lists no more; an absent value covers an empty one.

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
        return isinstance(live, list) and len(live) == len(desired) and all(map(covers, live, desired))
    return bool(live == desired)


def owns_more(live: JSONObject, manager: str, desired: JSONObject) -> bool:
    """Tell whether the manager's last apply set a field that `desired` lacks, or whether there was no such apply."""
    entries: list[JSONObject] = meta.metadata(live).get("managedFields") or []
    fields = next((entry.get("fieldsV1") for entry in entries if _is_apply_of(entry, manager)), None)
    return fields is None or _names_more(fields, desired)


def _is_apply_of(entry: JSONObject, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def _names_more(fields: Mapping[str, Any], value: JSON) -> bool:
    """Tell whether a set of fields (FieldsV1) names one that the value does not have."""
    for element, below in fields.items():
        if element == ".":
            continue
        child = _child(element, value)
        if child is ABSENT or (below and _names_more(below, child)):
            return True
    return False


def _child(element: str, value: JSON) -> JSON:
    """Follow one element of a path: `f:` a field, `k:` an item by its keys, `v:` an item by its value.

    Keys that the item lacks are ones the API server gave a default (`protocol: TCP`).
    """
    kind, _, rest = element.partition(":")
    if kind == "f" and isinstance(value, dict):
        return value.get(rest, ABSENT)
    if kind not in {"k", "v"} or not isinstance(value, list):
        return ABSENT
    wanted = msgspec.json.decode(rest)
    if kind == "v":
        return wanted if wanted in value else ABSENT
    return next((item for item in value if all(item.get(key, given) == given for key, given in wanted.items())), ABSENT)
