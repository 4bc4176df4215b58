"""Which fields of a set (FieldsV1, as `managedFields` has them) a value lacks: thousands of items are followed together.

In: a set, and the value it is about. Out: whether the set names a field that the value does not have. All sets of one
depth are followed at once, and the items that they name are found with a few calls that run in C.

A field is named by `f:` and its name, an item of a list by `k:` and its keys or by `v:` and its value; `.` is the value
itself. An item may lack keys to which the API server gave a default (`protocol: TCP`). A list has one set of keys, of one
or two; what has more counts as absent, so that no managedFields of any client cause a search of all items per element.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, repeat
from operator import itemgetter
from typing import Final, TypeAlias

import msgspec

from kuberuntime.objects.meta import JSON, JSONObject

MOST_KEYS: Final = 2
MOST_SETS_OF_KEYS: Final = 4

ITSELF: Final = "."

FEW: Final = 8
"""How many shapes of sets are followed one after the other."""

DEFAULTS: Final[JSONObject] = {"protocol": "TCP"}
"""The keys of items to which an API server gives a default."""

Keys: TypeAlias = tuple[str, ...]

_encoder = msgspec.json.Encoder(order="sorted")
_decode = msgspec.json.Decoder().decode
_encode = _encoder.encode
_encode_lines = _encoder.encode_lines


class _LackingError(Exception):
    """A value lacks a field that its set names."""


@dataclass(frozen=True, slots=True)
class _Level:
    """Sets of fields of one depth, and for each the value it is about."""

    sets: Sequence[JSONObject]
    values: Sequence[JSON]

    def naming(self) -> "_Level":
        """Leave out the sets that name nothing."""
        return self if all(self.sets) else self.chosen(self.sets)

    def chosen(self, selectors: Sequence[object]) -> "_Level":
        """Return those that are selected."""
        return _Level(list(compress(self.sets, selectors)), list(compress(self.values, selectors)))


def names_more(fields: JSONObject, value: JSON) -> bool:
    """Return whether a set names a field that the value does not have.

    >>> names_more({"f:a": {}, "f:b": {'k:{"name":"x"}': {".": {}}}}, {"a": 1, "b": [{"name": "x"}]})
    False
    >>> names_more({"f:a": {}}, {"b": 1})
    True
    """
    pending = [_Level([fields], [value])]
    try:
        while pending:
            level = pending.pop().naming()
            kinds = set(map(type, level.values))
            for kind in kinds:
                pending += _below(kind, level if len(kinds) == 1 else level.chosen(_are(kind, level.values)))
    except _LackingError:
        return True
    return False


def _are(kind: type, values: Sequence[JSON]) -> list[bool]:
    return [type(value) is kind for value in values]


def _below(kind: type, level: _Level) -> Iterable[_Level]:
    """Return what the fields name in values of one type, with the sets of what these have."""
    if issubclass(kind, dict):
        return _of_objects(level)
    if issubclass(kind, list):
        return [_of_lists(level)]
    _require(set().union(*level.sets) <= {ITSELF})
    return ()


def _require(is_met: bool) -> None:  # noqa: FBT001  a condition, as of an assertion
    if not is_met:
        raise _LackingError


def _of_objects(level: _Level) -> Iterable[_Level]:
    shapes = list(map(tuple, level.sets))
    kinds = set(shapes)
    if len(kinds) == len(shapes) or len(kinds) > FEW:
        return [_each(level)]
    chosen = (level if len(kinds) == 1 else level.chosen(list(map(kind.__eq__, shapes))) for kind in kinds)
    return chain.from_iterable(map(_columns, kinds, chosen))


def _each(level: _Level) -> _Level:
    """Follow sets that differ in what they name."""
    below: list[JSONObject] = []
    children: list[JSON] = []
    for fields, value in zip(level.sets, level.values, strict=True):
        named = fields if ITSELF not in fields else {name: field for name, field in fields.items() if name != ITSELF}
        names = [element[2:] for element in named]
        _require(names == list(value) or all(map(value.__contains__, names)))
        _require({element[:2] for element in named} <= {"f:"})
        if any(named.values()):
            further = [(field, value[name]) for field, name in zip(named.values(), names, strict=True) if field]
            below += [field for field, _ in further]
            children += [child for _, child in further]
    return _Level(below, children)


def _columns(shape: Sequence[str], level: _Level) -> Iterator[_Level]:
    """Follow sets that name the same fields, field by field."""
    for element in shape:
        if element == ITSELF:
            continue
        try:
            children = list(map(itemgetter(_name(element)), level.values))
        except KeyError:
            raise _LackingError from None
        below = list(map(itemgetter(element), level.sets))
        if any(below):
            yield _Level(below, children)


def _name(element: str) -> str:
    _require(element.startswith("f:"))
    return element[2:]


def _of_lists(level: _Level) -> _Level:
    below: list[JSONObject] = []
    children: list[JSON] = []
    for fields, items in zip(level.sets, level.values, strict=True):
        named = {element: further for element, further in fields.items() if element != ITSELF}
        below += named.values()
        children += _items_by_text(list(named), items) or _items(list(named), items)
    return _Level(below, children)


def _items_by_text(elements: Sequence[str], items: list[JSON]) -> Sequence[JSON] | None:
    """Return the items that elements name, where each item is written as one of them; None where some is not."""
    keys = _keys(elements[0]) if elements else ()
    if not keys or not _are_objects(items):
        return None
    filed = dict(zip(_written(keys, items), items, strict=False))
    found = list(map(filed.get, elements))
    return found if len(filed) == len(items) and None not in found else None


def _are_objects(values: Sequence[JSON]) -> bool:
    return all(map(isinstance, values, repeat(dict)))


def _keys(element: str) -> Keys:
    """Return the keys by which an element names an item, in its order; none where it does not."""
    try:
        keys = _decode(element[2:]) if element.startswith("k:") else ()
    except msgspec.DecodeError:
        return ()
    return tuple(keys) if isinstance(keys, dict) and len(keys) <= MOST_KEYS else ()


def _written(keys: Keys, items: list[JSONObject]) -> list[str]:
    """Write the elements that name items, as an API server does; none where an item lacks a key."""
    fields = ",".join(f"{_encode(key).decode()}:".replace("%", "%%") + "%s" for key in keys)
    try:
        values = [
            [item.get(key, DEFAULTS[key]) for item in items] if key in DEFAULTS else list(map(itemgetter(key), items))
            for key in keys
        ]
    except KeyError:
        return []
    columns = [_encode_lines(column).decode().split("\n")[:-1] for column in values]
    return list(map(f"k:{{{fields}}}".__mod__, zip(*columns, strict=True)))


def _items(elements: Sequence[str], items: list[JSON]) -> Sequence[JSON]:
    """Return the items of a list that elements name, all of them in the same way."""
    kinds = {element[:2] for element in elements}
    _require(kinds <= {"k:", "v:"})
    if len(kinds) > 1:
        by_kind = {kind: [element for element in elements if element.startswith(kind)] for kind in kinds}
        found = {kind: iter(_items(named, items)) for kind, named in by_kind.items()}
        return [next(found[element[:2]]) for element in elements]
    try:
        wanted = list(map(_decode, [element[2:] for element in elements]))
    except msgspec.DecodeError:
        raise _LackingError from None
    return _with_values(wanted, items) if kinds == {"v:"} else _with_keys(wanted, items)


def _with_values(wanted: Sequence[JSON], items: list[JSON]) -> Sequence[JSON]:
    filed = dict(zip(map(_encode, items), items, strict=True))
    try:
        return [filed[key] for key in map(_encode, wanted)]
    except KeyError:
        raise _LackingError from None


def _with_keys(wanted: Sequence[JSONObject], items: list[JSON]) -> Sequence[JSON]:
    _require(_are_objects(wanted))
    orders = dict.fromkeys(map(tuple, wanted))
    sets_of_keys: dict[Keys, Keys] = {order: tuple(sorted(order)) for order in orders}
    _require(len(set(sets_of_keys.values())) <= MOST_SETS_OF_KEYS and max(map(len, orders), default=0) <= MOST_KEYS)
    objects = items if _are_objects(items) else [item for item in items if isinstance(item, dict)]
    if len(orders) == 1:
        return _found(next(iter(sets_of_keys.values())), wanted, objects)
    found: list[JSON] = list(wanted)
    for keys in set(sets_of_keys.values()):
        places = [i for i, one in enumerate(wanted) if sets_of_keys[tuple(one)] == keys]
        for place, item in zip(places, _found(keys, [wanted[i] for i in places], objects), strict=True):
            found[place] = item
    return found


def _found(keys: Keys, wanted: Sequence[JSONObject], items: list[JSONObject]) -> Sequence[JSONObject]:
    """Return for each the item that has most of the wanted keys with their values and no others; of several, the first."""
    missing = len(items)
    places = _places(keys, items)
    found = [missing] * len(wanted)
    for number in sorted({len(present) for present in places}, reverse=True):
        filed = [(present, _filed(present, places[present], items)) for present in places if len(present) == number]
        tried = [list(map(firsts.get, _values(present, wanted), repeat(missing))) for present, firsts in filed]
        firsts = tried[0] if len(tried) == 1 else list(map(min, *tried))
        found = [old if old < missing else new for old, new in zip(found, firsts, strict=True)]
        if missing not in found:
            return [items[place] for place in found]
    raise _LackingError


def _places(keys: Keys, items: list[JSONObject]) -> dict[Keys, Sequence[int]]:
    """Return where the items are that have the same ones of the keys, by these."""
    if not keys:
        return {(): range(len(items))}
    presence = list(zip(*([name in item for item in items] for name in keys), strict=True))
    kinds = set(presence)
    return {
        tuple(compress(keys, kind)): range(len(items))
        if len(kinds) == 1
        else [place for place, one in enumerate(presence) if one == kind]
        for kind in kinds
    }


def _filed(present: Keys, places: Sequence[int], items: list[JSONObject]) -> dict[bytes, int]:
    """Return where the first item is with each combination of values."""
    values = _values(present, [items[place] for place in places])
    return dict(zip(reversed(values), reversed(places), strict=True))


def _values(names: Keys, objects: Sequence[JSONObject]) -> list[bytes]:
    return list(map(_encode, map(itemgetter(*names), objects))) if names else [b""] * len(objects)
