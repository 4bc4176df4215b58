"""Writes of the same content that another writer takes back again and again: when to write next, and who they are.

In: each write of some fields of an object, as their values, with the time. Out: the seconds until these values may be
written again. Other values, as in a rollout, never wait. The memory is bounded, and fields without writes are forgotten.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Apply, Patch, at

LIMIT: Final = 10
"""The number of equal writes within `WINDOW` after which they are slowed down."""

WINDOW: Final = 60.0
PACE: Final = 30.0
"""Seconds between two equal writes that others take back."""

MOST: Final = 4096
"""The maximum number of remembered targets; the one without writes for longest is forgotten first."""


SHOWN: Final = 3
"""The maximum number of fields that a message names."""

GUARDS: Final = frozenset({"uid", "resourceVersion", "name", "namespace"})
"""The fields of `metadata` in a write that name the object, and are not written."""


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


def written(action: Apply | Patch) -> JSONObject:
    """Return the written fields without the identity of the object."""
    body = action.object if isinstance(action, Apply) else action.patch
    metadata = {name: value for name, value in meta.metadata(body).items() if name not in GUARDS}
    return body | {"metadata": metadata}


def target_of(action: Apply | Patch) -> Target:
    """Return the fields that an action writes; those of an apply are all of its manager."""
    if isinstance(action, Apply):
        return Target(action.resource, meta.key(action.object), (action.manager,))
    return Target(action.resource, action.key, tuple(".".join(path) for path, _ in _leaves(written(action))))


def content_of(action: Apply | Patch) -> int:
    """Return the hash of the written values, within this process."""
    return hash(msgspec.json.encode(written(action)))


def _leaves(value: JSONObject, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], JSON]]:
    """Yield the paths and values of fields; lists are omitted, since the API server completes and reorders them."""
    for name, inner in value.items():
        path = (*above, name)
        if isinstance(inner, dict):
            yield from _leaves(inner, path)
        elif inner is not None and not isinstance(inner, list):
            yield path, inner


def contested(action: Apply | Patch, stored: JSONObject) -> str:
    """Return a sentence about the written fields that have other values, and their writers; empty if there are none.

    >>> from kuberuntime.objects.resources import PODS
    >>> other = {"manager": "kyverno", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}}
    >>> stored = {"metadata": {"managedFields": [other]}, "spec": {"a": 1, "b": 2}}
    >>> contested(Apply(resource=PODS, object={"spec": {"a": 2, "b": 2}}, manager="app"), stored)
    'spec.a is written by app and by kyverno (Update)'
    """
    manager = action.manager if isinstance(action, Apply) else ""
    entries = meta.metadata(stored).get("managedFields") or []
    paths = [path for path, value in _leaves(written(action)) if at(stored, path) != value]
    return "; ".join(
        f"{'.'.join(path)} is written by {manager or 'this process'} and by {_writers(entries, path, manager)}"
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
        fields = fields.get(f"f:{name}") if isinstance(fields, dict) else None
    return fields is not None
