"""Selects the fields of an object that a cache stores. The fields are declared as paths.

Input: an object from the API server. Output: a new object with the declared fields and the fields that caches and
events always require (`IDENTITY`). All other fields are skipped during decoding. If the type of a value does not
match its path (for example null, or a string instead of a list), the value is preserved unchanged.

Paths are written as in `fieldPath`: `spec.nodeName`, `metadata.annotations['example.com/a']`, and `[]` for the items of
a list: `status.conditions[].type`. A path includes everything below it.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from kuberuntime.objects.meta import JSON, JSONObject

SHORT_KEY: Final = 32
"""The maximum length in characters of a key that msgspec itself shares."""

MOST_STRINGS: Final = 2048
MOST_PARTS: Final = 512
"""The maximum number of values in a generation."""

DEPTH: Final = 32
"""The maximum nesting depth at which strings are shared. Pod templates have about 12 levels."""

LONGEST_STRING: Final = 256
LONGEST_PART: Final = 1024
"""The maximum number of characters of a shared string, and of bytes of a shared part. Longer values rarely repeat."""

LARGE: Final = 64 * 1024
"""The size in bytes from which the strings of a part are not shared, because this would block the event loop."""

PARTS: Final = range(DEPTH - 4, DEPTH - 1)
"""The levels whose objects and lists are shared. An object, its metadata, spec and status are never shared."""

K = TypeVar("K")
V = TypeVar("V")

_NESTING: Final = (dict, list)

_encode: Final = msgspec.json.Encoder().encode


class Generations(Generic[K, V]):
    """A cache of recent values with two generations. If a value is reused, it moves to the new generation."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value for this key if it is in the old generation, and move it to the new generation."""
        value = self._old.get(key)
        return None if value is None else self.put(key, value)

    def put(self, key: K, value: V) -> V:
        """Add a value to the new generation, and return it."""
        if len(self.young) >= self._most:
            self._old, self.young = self.young, {}
        self.young[key] = value
        return value

    def __len__(self) -> int:
        return len(self.young) + len(self._old)


class Values:
    """Replaces strings, objects and lists with recent equal values, so that each value is stored once.

    `sys.intern` is not suitable, because some Python versions (3.12) never free interned strings, and new UIDs and
    names are added constantly.

    >>> values = Values()
    >>> one, other = (values.deduplicate({"status": {"conditions": [{"type": "Ready"}]}}) for _ in range(2))
    >>> one["status"] is other["status"], one["status"]["conditions"] is other["status"]["conditions"]
    (False, True)
    """

    def __init__(self, strings: int = MOST_STRINGS, parts: int = MOST_PARTS) -> None:
        self._strings = Generations[str, str](strings)
        self._parts = Generations[bytes, JSON](parts)

    def share(self, text: str) -> str:
        """Return the shared string that equals this string.

        If there is no such string, share and return this string.
        """
        shared_text = self._strings.young.get(text)
        if shared_text is not None or len(text) > LONGEST_STRING:
            return text if shared_text is None else shared_text
        return self._strings.get(text) or self._strings.put(text, text)

    def deduplicate(self, value: JSON, last: JSON = None, levels: int = DEPTH) -> JSON:
        """Return an equal value with shared parts, strings and long keys. Parts below `levels` are not shared.

        Parts that are equal in `last`, an earlier version of the value, are taken from `last`.
        """
        if isinstance(value, str):
            return self.share(value)
        if not isinstance(value, _NESTING):
            return value
        if levels not in PARTS:
            return self._deduplicate_parts(value, last, levels) if levels else value
        text = _encode(value)
        if len(text) > LONGEST_PART:
            return self._deduplicate_parts(value, last, levels) if len(text) < LARGE else value
        part = self._parts.young.get(text)
        if part is None and (part := self._parts.get(text)) is None:
            part = self._parts.put(text, self._deduplicate_parts(value, last, levels))
        return part

    def _deduplicate_parts(self, value: JSON, last: JSON, levels: int) -> JSON:
        if isinstance(value, list):
            return [self.deduplicate(item, None, levels - 1) for item in value]
        if not isinstance(last, dict):
            return {
                key if len(key) <= SHORT_KEY else self.share(key): (
                    self.share(child) if isinstance(child, str) else self.deduplicate(child, None, levels - 1)
                )
                for key, child in value.items()
            }
        # A field does not change its type, so equal values of different types in Python (1 and true) do not differ
        # here.
        return {
            key: previous if (previous := last.get(key)) == child else self.deduplicate(child, previous, levels - 1)
            for key, child in value.items()
        }

    def __len__(self) -> int:
        return len(self._strings) + len(self._parts)


SHARED: Final = Values()
"""The strings that all caches of this process share. Labels, names and UIDs occur in objects of several kinds."""


Step: TypeAlias = str
Path: TypeAlias = tuple[Step, ...]

ITEMS: Final = "[]"
"""The path step from a list to its items."""

IDENTITY: Final = (
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.deletionTimestamp",
    "metadata.ownerReferences",
)
"""The fields of each object that the runtime reads.

They contain keys, preconditions, references, owners and deletion.
"""

_STEP: Final = re.compile(r"\.?([A-Za-z0-9_]+)|(\[\])|\['([^']+)'\]")

_Tree: TypeAlias = dict[Step, "_Tree | None"]
"""The stored fields below each step, or None to store all fields."""


class Projection:
    """Reduces objects to the declared paths.

    >>> projection = Projection("status.conditions[].type")
    >>> projection({"kind": "Pod", "spec": {}, "status": {"conditions": [{"type": "Ready", "message": "is ready"}]}})
    {'kind': 'Pod', 'status': {'conditions': [{'type': 'Ready'}]}}
    """

    def __init__(self, *paths: str | Path) -> None:
        all_paths = tuple(parse(path) if isinstance(path, str) else path for path in (*IDENTITY, *paths))
        self.paths: Final = tuple(dict.fromkeys(all_paths))
        self._tree: Final = _tree(self.paths)

    def __call__(self, obj: JSONObject) -> JSONObject:
        """Return the declared fields of the object."""
        fields: JSONObject = _keep(obj, self._tree)
        return fields

    def decode(self, content: "Content") -> JSONObject:
        """Decode the declared fields of an object. Raise `msgspec.DecodeError` if the object cannot be decoded.

        >>> Projection("spec.nodeName").decode(b'{"kind": "Pod", "spec": {"nodeName": "n", "hostname": "h"}}')
        {'kind': 'Pod', 'spec': {'nodeName': 'n'}}
        """
        try:
            fields: JSONObject = msgspec.to_builtins(self._decoder.decode(content))
        except msgspec.ValidationError:  # the type of a value does not match its path
            return self(decode(content))
        return fields

    @cached_property
    def _decoder(self) -> "msgspec.json.Decoder[msgspec.Struct]":
        return msgspec.json.Decoder(_build_type(self._tree))

    def __or__(self, other: "Projection") -> "Projection":
        """Return a projection with the fields of both projections."""
        return Projection(*self.paths, *other.paths)

    def covers(self, path: Path) -> bool:
        """Return whether the projection contains the complete value at this path."""
        return any(path[: len(prefix)] == prefix for prefix in self.paths)


Keep: TypeAlias = Callable[[JSONObject], Projection]
"""Returns the projection for an object, based on the fields in `IDENTITY`. Other fields can be absent."""

Content: TypeAlias = bytes | memoryview | msgspec.Raw
"""An encoded object."""

Decode: TypeAlias = Callable[[Content], JSONObject]

decode: Final[Decode] = msgspec.json.Decoder(JSONObject).decode
"""Decodes all fields of an object."""


def build_decoder(keep: Keep) -> Decode:
    """Return a function that decodes the declared fields of an object.

    The projection depends on the object. Usually it is the same as for the previous object, so one pass is sufficient.
    """
    previous = Projection()

    def decode_declared(content: Content) -> JSONObject:
        nonlocal previous
        obj = previous.decode(content)
        if (projection := keep(obj)) is not previous:
            previous, obj = projection, projection.decode(content)
        return obj

    return decode_declared


def merge_keeps(first: Keep | None, second: Keep | None) -> Keep | None:
    """Return a `Keep` with the fields that at least one of two readers requires. None selects whole objects."""
    if first is second or first is None or second is None:
        return first if first is second else None
    united = cache(Projection.__or__)
    return lambda obj: united(first(obj), second(obj))


def parse(text: str) -> Path:
    """Return the steps of a path.

    >>> parse("status.conditions[].type"), parse("metadata.annotations['example.com/a']")
    (('status', 'conditions', '[]', 'type'), ('metadata', 'annotations', 'example.com/a'))
    """
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"path {text!r}: invalid step {text[position:]!r}: must be a field, [] or ['key']")
        steps.append(next(step for step in match.groups() if step is not None))
        position = match.end()
    return tuple(steps)


def _tree(paths: Iterable[Path]) -> _Tree:
    tree: dict[str, Any] = {}
    for path in sorted(paths, key=len):
        below: dict[str, Any] | None = tree
        for step in path[:-1]:
            below = None if below is None else below.setdefault(step, {})
        if below is not None and below.get(path[-1], ...) is not None:
            below[path[-1]] = None
    return tree


def _build_type(tree: _Tree | None) -> Any:
    """Return a type that contains only the declared fields, so that msgspec skips all other fields."""
    if tree is None:
        return Any
    if ITEMS in tree:
        return list[_build_type(tree[ITEMS])]  # type: ignore[misc]
    names = {f"field_{index}": name for index, name in enumerate(tree)}
    fields = [(field, _build_type(tree[name]) | msgspec.UnsetType, msgspec.UNSET) for field, name in names.items()]
    return msgspec.defstruct("Kept", fields, rename=names, gc=False)


def _keep(value: JSON, tree: _Tree | None) -> JSON:
    if tree is not None and isinstance(value, dict) and ITEMS not in tree:
        return {name: _keep(value[name], below) for name, below in tree.items() if name in value}
    if tree is not None and isinstance(value, list) and ITEMS in tree:
        return [_keep(item, tree[ITEMS]) for item in value]
    return value
