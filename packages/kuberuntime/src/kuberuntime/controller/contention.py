"""Writes of the same content that another writer takes back again and again: when to write next, and who they are.

In: each write of some fields of an object, as their values, with the time. Out: the seconds until these values may be
written again. Other values, as in a rollout, never wait. The memory is bounded, and fields without writes are forgotten.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Apply, Patch, Put

LIMIT: Final = 10
"""The number of equal writes within `WINDOW` after which they are slowed down."""

WINDOW: Final = 60.0
PACE: Final = 30.0
"""Seconds between two equal writes that others take back."""

MOST: Final = 4096
"""The maximum number of remembered targets; the one without writes for longest is forgotten first."""


SHOWN: Final = 3
"""The maximum number of fields that a message names."""

GUARDS: Final = frozenset(
    {"uid", "resourceVersion", "name", "namespace", "generation", "creationTimestamp", "managedFields"}
)
"""The fields of `metadata` in a write that name the object or are set by API servers, and are not written."""

Contestable: TypeAlias = Apply | Patch | Put
"""The writes that are slowed down."""


class Target(NamedTuple):
    """Some fields of an object that are written together."""

    resource: Resource
    key: ObjectKey
    fields: tuple[str, ...]


@dataclass(slots=True)
class _Writes:
    """The values that were written last, when that was, and whether the next write of them waits."""

    content: int
    times: deque[float] = field(default_factory=lambda: deque(maxlen=LIMIT))
    is_slow: bool = False
    is_reported: bool = False


class Contention:
    """The last writes of fields of each object."""

    def __init__(self) -> None:
        self._writes: OrderedDict[Target, _Writes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._writes)

    def wait(self, target: Target, content: int, now: float) -> float:
        """Return the seconds until fields may be written again with this content."""
        self._forget(now)
        writes = self._writes.get(target)
        if writes is None or writes.content != content:
            return 0.0
        if len(writes.times) == LIMIT and now - writes.times[0] < WINDOW:
            writes.is_slow = True
        return max(writes.times[-1] + PACE - now, 0.0) if writes.is_slow else 0.0

    def reports(self, target: Target) -> bool:
        """Return whether the wait for the next write has to be reported, which is once for each write."""
        writes = self._writes[target]
        is_due, writes.is_reported = not writes.is_reported, True
        return is_due

    def wrote(self, target: Target, content: int, now: float) -> None:
        """Remember a successful write."""
        writes = self._writes.get(target)
        if writes is None or writes.content != content:
            writes = self._writes[target] = _Writes(content)
        writes.times.append(now)
        writes.is_reported = False
        self._writes.move_to_end(target)
        if len(self._writes) > MOST:
            self._writes.popitem(last=False)

    def settle(self, target: Target) -> None:
        """Forget the writes of fields that turned out to have the written values."""
        self._writes.pop(target, None)

    def _forget(self, now: float) -> None:
        """Forget the fields without writes for longer than a slow write waits."""
        while self._writes and now - next(iter(self._writes.values())).times[-1] > WINDOW + PACE:
            self._writes.popitem(last=False)


def written(action: Contestable) -> JSONObject:
    """Return the written fields without the identity of the object, and without a status that came with it."""
    body = action.patch if isinstance(action, Patch) else action.object
    metadata = {name: value for name, value in meta.metadata(body).items() if name not in GUARDS}
    kept = {name: value for name, value in body.items() if name != "status" or isinstance(action, Patch)}
    return kept | {"metadata": metadata}


def target_of(action: Contestable) -> Target:
    """Return the fields that an action writes: of an apply all of its manager, of a replacement all."""
    match action:
        case Apply():
            return Target(action.resource, meta.key(action.object), (action.manager,))
        case Put():
            return Target(action.resource, meta.key(action.object), (action.subresource,))
        case Patch():
            return Target(action.resource, action.key, tuple(_text(path) for path, _ in _leaves(written(action))))


def content_of(action: Contestable) -> int:
    """Return the hash of the written values, within this process."""
    return hash(msgspec.json.encode(written(action)))


def _leaves(value: JSON, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], JSON]]:
    """Yield the paths and values of fields.

    The items of a list with names are fields. Other lists are omitted, since the API server completes and reorders them.
    """
    for name, inner in _members(value):
        path = (*above, name)
        if isinstance(inner, dict | list):
            yield from _leaves(inner, path)
        elif inner is not None:
            yield path, inner


def _members(value: JSON) -> Iterable[tuple[str, JSON]]:
    """Return the fields of an object, or the items of a list by their names; none if they have no names."""
    if isinstance(value, dict):
        return value.items()
    if not isinstance(value, list) or not all(isinstance(item, dict) and item.get("name") for item in value):
        return ()
    return [(f"[name={item['name']}]", item) for item in value]


def _at(value: JSON, path: Iterable[str]) -> JSON:
    for name in path:
        value = dict(_members(value)).get(name)
    return value


def _text(path: Iterable[str]) -> str:
    return ".".join(path).replace(".[", "[")


def contested(action: Contestable, stored: JSONObject) -> str:
    """Return a sentence about the written fields that have other values, and their writers; empty if there are none.

    >>> from kuberuntime.objects.resources import PODS
    >>> other = {"manager": "kyverno", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}}
    >>> stored = {"metadata": {"managedFields": [other]}, "spec": {"a": 1, "b": 2}}
    >>> contested(Apply(resource=PODS, object={"spec": {"a": 2, "b": 2}}, manager="app"), stored)
    'spec.a is written by app and by kyverno (Update)'
    """
    manager = action.manager if isinstance(action, Apply) else ""
    entries = meta.metadata(stored).get("managedFields") or []
    paths = [path for path, value in _leaves(written(action)) if _at(stored, path) != value]
    return "; ".join(
        f"{_text(path)} is written by {manager or 'this process'} and by {_writers(entries, path, manager)}"
        for path in paths[:SHOWN]
    )


def _writers(entries: Sequence[JSONObject], path: tuple[str, ...], manager: str) -> str:
    """Return the writers of a field except the own entry of `manager`, whose name others may use as well."""
    owners = [(entry.get("manager"), entry.get("operation")) for entry in entries if _owns(entry, path)]
    others = [f"{name} ({operation})" for name, operation in owners if (name, operation) != (manager, "Apply")]
    return ", ".join(others) or (
        f"another process that calls itself {manager}" if owners else "a writer that removes it"
    )


def _owns(entry: JSONObject, path: tuple[str, ...]) -> bool:
    fields: JSON = entry.get("fieldsV1")
    for name in path:
        key = f'k:{{"name":"{name[6:-1]}"}}' if name.startswith("[name=") else f"f:{name}"
        fields = fields.get(key) if isinstance(fields, dict) else None
    return fields is not None
