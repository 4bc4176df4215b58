"""Caches selected objects of one kind in memory, with indexes. A cache has one writer and any number of readers.

Input: the outputs of the watch (`watch.py`). Output: a `Change` per object, created after the store contains the new
state. A new listing is collected separately, and then replaces the previous contents in one step. Objects that
disappeared while the watch was interrupted are reported as deleted. Unchanged objects are not reported.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from kuberuntime.cache import watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey

Indexer: TypeAlias = Callable[[JSONObject], Iterable[str]]
"""Returns the index values of an object."""


class Change(Struct, frozen=True):
    """A change to one object. `old` is None for an addition, and `new` is None for a deletion."""

    old: JSONObject | None
    new: JSONObject | None

    @property
    def object(self) -> JSONObject:
        """Return the latest state, which is `new`, or `old` after a deletion."""
        obj = self.new if self.new is not None else self.old
        if obj is None:
            raise ValueError("a change requires an old or a new object")
        return obj


Values: TypeAlias = tuple[tuple[str, ...], ...]
"""The index values of an object, for each index."""


class _Contents(Struct):
    """The contents of a store, which consist of objects by key, and of objects by index value and key.

    The index values of each object are stored, because most changes do not alter them.
    """

    indexers: Mapping[str, Indexer]
    objects: dict[ObjectKey, JSONObject] = field(default_factory=dict)
    values: dict[ObjectKey, Values] = field(default_factory=dict)
    indexes: dict[str, dict[str, dict[ObjectKey, JSONObject]]] = field(default_factory=dict)
    evaluated: tuple[JSONObject | None, Values] = (None, ())

    def evaluate(self, obj: JSONObject) -> Values:
        if self.evaluated[0] is not obj:
            values = tuple(tuple(map(sys.intern, indexer(obj))) for indexer in self.indexers.values())
            self.evaluated = obj, values
        return self.evaluated[1]

    def put(self, key: ObjectKey, obj: JSONObject) -> JSONObject | None:
        values, old = self.evaluate(obj), self.objects.get(key)
        if old is not None and self.values[key] != values:
            self.remove(key)
        self.objects[key], self.values[key] = obj, values
        for index, own in zip(self.indexers, values, strict=True):
            for value in own:
                self.indexes.setdefault(index, {}).setdefault(value, {})[key] = obj
        return old

    def remove(self, key: ObjectKey) -> JSONObject | None:
        obj = self.objects.pop(key, None)
        if obj is None:
            return None
        for index, own in zip(self.indexers, self.values.pop(key), strict=True):
            for value in own:
                by_value = self.indexes[index]
                by_value[value].pop(key, None)
                if not by_value[value]:
                    del by_value[value]
        return obj


class Store:
    """The read interface of the cache. The returned objects are shared and must not be modified."""

    def __init__(self, indexers: Mapping[str, Indexer]) -> None:
        self._contents = _Contents(indexers)

    def get(self, key: ObjectKey) -> JSONObject | None:
        """Return the object with this key, or None if it does not exist."""
        return self._contents.objects.get(key)

    def list(self) -> Sequence[JSONObject]:
        """Return all objects."""
        return tuple(self._contents.objects.values())

    def by_index(self, name: str, value: str) -> Sequence[JSONObject]:
        """Return the objects with the index value `value` in the index `name`."""
        if name not in self._contents.indexers:
            raise KeyError(f"index {name!r} does not exist; available: {', '.join(self._contents.indexers) or 'none'}")
        return tuple(self._contents.indexes.get(name, {}).get(value, {}).values())

    def __len__(self) -> int:
        return len(self._contents.objects)


class Writer(Store):
    """The write interface of the cache. It applies the watch outputs of its informer and returns the changes."""

    def __init__(self, indexers: Mapping[str, Indexer]) -> None:
        super().__init__(indexers)
        self._listing: dict[ObjectKey, JSONObject] | None = None

    def evaluate(self, obj: JSONObject) -> None:
        """Determine the index values of an object before it is applied. Raise an error if it cannot be indexed."""
        self._contents.evaluate(obj)

    def apply(self, output: watch.Output) -> list[Change]:
        """Apply one watch output and return the changes."""
        match output:
            case watch.ListStarted():
                self._listing = {}
            case watch.ListPage(objects) if self._listing is not None:
                self._listing.update((meta.key(obj), obj) for obj in objects)
            case watch.ListItemRemoved(obj) if self._listing is not None:
                self._listing.pop(meta.key(obj), None)
            case watch.ListCompleted() if self._listing is not None:
                listing, self._listing = self._listing, None
                return self._replace(listing)
            case watch.ObjectApplied(obj):
                return differences(self._contents.put(meta.key(obj), obj), obj)
            case watch.ObjectDeleted(obj):
                return [] if self._contents.remove(meta.key(obj)) is None else [Change(obj, None)]
            case watch.ObjectHidden(obj):
                last = self._contents.remove(meta.key(obj))
                return [] if last is None else [Change(last, None)]
        return []

    def _replace(self, listing: dict[ObjectKey, JSONObject]) -> list[Change]:
        before = self._contents.objects
        after = _Contents(self._contents.indexers)
        for key, obj in listing.items():
            after.put(key, obj)
        self._contents = after
        removals = [Change(old, None) for key, old in before.items() if key not in listing]
        return removals + [change for key, obj in listing.items() for change in differences(before.get(key), obj)]


def differences(old: JSONObject | None, new: JSONObject) -> list[Change]:
    """Return the changes between two states of a key. A recreated object results in a deletion and an addition."""
    if old is None:
        return [Change(None, new)]
    if meta.uid(old) != meta.uid(new):
        return [Change(old, None), Change(None, new)]
    return [] if meta.resource_version(old) == meta.resource_version(new) else [Change(old, new)]
