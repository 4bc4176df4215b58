"""Reading a value into a Go type where one that differs little was read before: what did not change is taken over.

The fields of a struct and the items of a list are read independently of each other. So those that equal what was read
before, which C finds out, are written as they were; only the others are read. In: the value, and the reading before.
Out: what `roundtrip` returns for the value, sharing parts with the reading before.
"""

from dataclasses import dataclass
from operator import ne
from typing import Final

from kuberuntime.objects.gotypes.declarations import GoTypes, element_of, shape_of
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from kuberuntime.objects.gotypes.roundtrip import round_trip
from kuberuntime.objects.meta import JSON, JSONObject

FEW: Final = 8
"""How many items of a list are read one by one; of more, all are read at once."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A value that was read into a Go type, and what Go writes for it."""

    value: JSON
    written: JSON


def reread(types: GoTypes, struct: str, value: JSON, before: Reading, path: str = "") -> JSONObject:
    """Return `value` as Go writes it after reading it into `struct`, with the parts that are as before.

    >>> from kuberuntime.objects.gotypes.declarations import KUBERNETES
    >>> before = Reading({"name": "c", "image": "app:1"}, {"name": "c", "image": "app:1", "resources": {}})
    >>> reread(KUBERNETES, "Container", {"name": "c", "image": "app:2"}, before)
    {'name': 'c', 'image': 'app:2', 'resources': {}}
    """
    try:
        return _struct(types, struct, value, before)
    except GoTypeError:
        return round_trip(types, struct, value, path)  # which names the first field of the whole value


def _struct(types: GoTypes, struct: str, value: JSON, before: Reading) -> JSONObject:
    if not (isinstance(value, dict) and isinstance(before.value, dict) and isinstance(before.written, dict)):
        return round_trip(types, struct, value)
    fields, taken, rest = types.fields(struct), {}, {}
    for name, child in value.items():
        past = Reading(before.value.get(name), before.written.get(name))
        if child == past.value:
            if name in before.written:
                taken[name] = past.written
        elif name in fields and _is_divisible(fields[name].type, child, past):
            taken[name] = _parts(types, fields[name].type, child, past)
        else:
            rest[name] = child
    return round_trip(types, struct, rest) | taken


def _is_divisible(go_type: str, value: JSON, before: Reading) -> bool:
    """Return whether it is worth reading the parts of a value that changed, one by one."""
    match shape_of(go_type):
        case "struct":
            return isinstance(value, dict) and isinstance(before.value, dict) and isinstance(before.written, dict)
        case "list" if shape_of(element_of(go_type)) == "struct":
            return (
                _are_alike(value, before.value) and _are_alike(value, before.written) and _differ_in_few(value, before)
            )
        case _:
            return False


def _are_alike(value: JSON, other: JSON) -> bool:
    return isinstance(value, list) and isinstance(other, list) and len(value) == len(other)


def _differ_in_few(value: list[JSON], before: Reading) -> bool:
    differing: int = sum(map(ne, value, before.value))
    return differing <= FEW


def _parts(types: GoTypes, go_type: str, value: JSON, before: Reading) -> JSON:
    if isinstance(value, dict):
        return _struct(types, go_type, value, before)
    items = zip(value, before.value, before.written, strict=True)
    element = element_of(go_type)
    return [past if item == old else _struct(types, element, item, Reading(old, past)) for item, old, past in items]
