"""Delays writes that a different writer repeatedly reverts, and identifies the writers.

Input: the written field values of an object, with the time. Output: the seconds until these values may be written
again. Different values, as in a rollout, are never delayed. Memory is limited, and the records of fields without
recent writes are removed.
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
"""The number of identical writes within `WINDOW` after which writes are delayed."""

WINDOW: Final = 60.0
DELAY: Final = 30.0
"""The interval in seconds between identical writes that are reverted."""

MOST: Final = 4096
"""The maximum number of recorded targets. The least recently written target is removed first."""


SHOWN: Final = 3
"""The maximum number of fields in a message."""

GUARDS: Final = frozenset(
    {"uid", "resourceVersion", "name", "namespace", "generation", "creationTimestamp", "managedFields"}
)
"""The `metadata` fields in a write that identify the object or that API servers set."""

Contestable: TypeAlias = Apply | Patch | Put
"""The writes that can be delayed."""


class Target(NamedTuple):
    """A set of fields of an object that are written together."""

    resource: Resource
    key: ObjectKey
    fields: tuple[str, ...]


@dataclass(slots=True)
class _WriteHistory:
    """The last written values, their time, and whether the next identical write is delayed."""

    content: int
    times: deque[float] = field(default_factory=lambda: deque(maxlen=LIMIT))
    is_slow: bool = False
    is_reported: bool = False


class Contention:
    """The last writes to the fields of each object."""

    def __init__(self) -> None:
        self._writes: OrderedDict[Target, _WriteHistory] = OrderedDict()

    def __len__(self) -> int:
        return len(self._writes)

    def delay(self, target: Target, content: int, now: float) -> float:
        """Return the delay in seconds until this content can be rewritten to the fields."""
        self._forget(now)
        writes = self._writes.get(target)
        if writes is None or writes.content != content:
            return 0.0
        if len(writes.times) == LIMIT and now - writes.times[0] < WINDOW:
            writes.is_slow = True
        return max(writes.times[-1] + DELAY - now, 0.0) if writes.is_slow else 0.0

    def must_report(self, target: Target) -> bool:
        """Return whether the delay of the next write must be reported. Each delay is reported once."""
        writes = self._writes[target]
        is_due, writes.is_reported = not writes.is_reported, True
        return is_due

    def record_write(self, target: Target, content: int, now: float) -> None:
        """Record a successful write."""
        writes = self._writes.get(target)
        if writes is None or writes.content != content:
            writes = self._writes[target] = _WriteHistory(content)
        writes.times.append(now)
        writes.is_reported = False
        self._writes.move_to_end(target)
        if len(self._writes) > MOST:
            self._writes.popitem(last=False)

    def remove(self, target: Target) -> None:
        """Remove the records of fields that contain the written values."""
        self._writes.pop(target, None)

    def _forget(self, now: float) -> None:
        """Remove the records of fields that were not written for longer than the delay."""
        while self._writes and now - next(iter(self._writes.values())).times[-1] > WINDOW + DELAY:
            self._writes.popitem(last=False)


def written_fields(action: Contestable) -> JSONObject:
    """Return the written fields, except for the identity and the unwritten status of the object."""
    body = action.patch if isinstance(action, Patch) else action.object
    metadata = {name: value for name, value in meta.metadata(body).items() if name not in GUARDS}
    kept = {name: value for name, value in body.items() if name != "status" or isinstance(action, Patch)}
    return kept | {"metadata": metadata}


def write_target(action: Contestable) -> Target:
    """Return the fields that an action writes. An apply or a replacement writes all its fields."""
    match action:
        case Apply():
            return Target(action.resource, meta.key(action.object), (action.manager,))
        case Put():
            return Target(action.resource, meta.key(action.object), (action.subresource,))
        case Patch():
            return Target(
                action.resource,
                action.key,
                tuple(_format_path(path) for path, _ in _field_values(written_fields(action))),
            )


def content_hash(action: Contestable) -> int:
    """Return a hash of the written values. It is valid only in this process."""
    return hash(msgspec.json.encode(written_fields(action)))


def _field_values(value: JSON, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], JSON]]:
    """Yield the paths and values of all fields.

    List items with names are fields. Other lists are omitted, because the API server completes and reorders them.
    """
    for name, inner in _members(value):
        path = (*above, name)
        if isinstance(inner, dict | list):
            yield from _field_values(inner, path)
        elif inner is not None:
            yield path, inner


def _members(value: JSON) -> Iterable[tuple[str, JSON]]:
    """Return the fields of an object, or the named items of a list."""
    if isinstance(value, dict):
        return value.items()
    if not isinstance(value, list) or not all(isinstance(item, dict) and item.get("name") for item in value):
        return ()
    return [(f"[name={item['name']}]", item) for item in value]


def _value_at(value: JSON, path: Iterable[str]) -> JSON:
    for name in path:
        value = dict(_members(value)).get(name)
    return value


def _format_path(path: Iterable[str]) -> str:
    return ".".join(path).replace(".[", "[")


def describe_conflicts(action: Contestable, stored: JSONObject) -> str:
    """Describe the written fields that now have different values, and their writers. Return "" if there are none.

    >>> from kuberuntime.objects.resources import PODS
    >>> other = {"manager": "kyverno", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}}
    >>> stored = {"metadata": {"managedFields": [other]}, "spec": {"a": 1, "b": 2}}
    >>> describe_conflicts(Apply(resource=PODS, object={"spec": {"a": 2, "b": 2}}, manager="app"), stored)
    'spec.a is written by app and by kyverno (Update)'
    """
    manager = action.manager if isinstance(action, Apply) else ""
    entries = meta.metadata(stored).get("managedFields") or []
    paths = [path for path, value in _field_values(written_fields(action)) if _value_at(stored, path) != value]
    return "; ".join(
        f"{_format_path(path)} is written by {manager or 'this process'} and by {_writers(entries, path, manager)}"
        for path in paths[:SHOWN]
    )


def _writers(entries: Sequence[JSONObject], path: tuple[str, ...], manager: str) -> str:
    """Return the writers of a field, without the entry of `manager`. Other writers can have the same name."""
    owners = [(entry.get("manager"), entry.get("operation")) for entry in entries if _is_owner(entry, path)]
    others = [f"{name} ({operation})" for name, operation in owners if (name, operation) != (manager, "Apply")]
    return ", ".join(others) or (
        f"a different process with the field manager {manager}" if owners else "a writer that removes it"
    )


def _is_owner(entry: JSONObject, path: tuple[str, ...]) -> bool:
    fields: JSON = entry.get("fieldsV1")
    for name in path:
        key = f'k:{{"name":"{name[6:-1]}"}}' if name.startswith("[name=") else f"f:{name}"
        fields = fields.get(key) if isinstance(fields, dict) else None
    return fields is not None
