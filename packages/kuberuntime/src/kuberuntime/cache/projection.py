"""Projections: the fields of an object that a cache keeps, declared as paths.

In: an object as it came from the wire. Out: a new object with the declared fields and the fields that caches,
barriers and events need of every object (`IDENTITY`); all other fields are dropped. A value whose type does not fit
its path (null,
a string instead of a list) is kept unchanged, so that readers get what the server sent.

Paths are written as in `fieldPath`: `spec.nodeName`, `metadata.annotations['example.com/a']`, and `[]` for the items
of
a list: `status.conditions[].type`. A path includes everything below it.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, TypeAlias

from kuberuntime.objects.meta import JSON, JSONObject

MOST_STRINGS: Final = 2048
"""Strings per generation."""

LONGEST_STRING: Final = 256
"""Characters of the longest string that is shared. Longer strings hardly repeat."""


class Strings:
    """Returns for each string a recent equal string, if any, so that each is stored once.

    `sys.intern` is not suitable: in some versions of Python (3.12) interned strings are never freed, while new UIDs
    and
    names keep coming. At most two generations are remembered: a string that is seen again moves to the new one.

    >>> strings = Strings()
    >>> one, other = "".join(["a", "b"]), "".join(["a", "b"])
    >>> one is other, strings.share(one) is strings.share(other)
    (False, True)
    """

    def __init__(self, most: int = MOST_STRINGS) -> None:
        self._most = most
        self._young: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def share(self, text: str) -> str:
        """Return the string, or the shared string that equals it."""
        if len(text) > LONGEST_STRING:
            return text
        found = self._young.get(text)
        if found is None:
            found = self._old.get(text, text)
            if len(self._young) >= self._most:
                self._old, self._young = self._young, {}
            self._young[found] = found
        return found

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


SHARED: Final = Strings()
"""Those of all caches of this process; labels, names and UIDs of one kind are met again in others."""


Step: TypeAlias = str
Path: TypeAlias = tuple[Step, ...]
Share: TypeAlias = Callable[[str], str]

ITEMS: Final = "[]"
"""The step from a list to its items."""

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
"""The fields that the runtime reads of every object: keys, preconditions, references, owners, whether it is being deleted."""

DEPTH: Final = 32
"""Levels of nesting down to which strings are shared; pod templates have about 12."""

_STEP: Final = re.compile(r"\.?([A-Za-z0-9_]+)|(\[\])|\['([^']+)'\]")

_Tree: TypeAlias = dict[Step, "_Tree | None"]
"""The kept fields below each step; None keeps everything."""


class Projection:
    """Reduces objects to the declared paths.

    >>> projection = Projection("status.conditions[].type")
    >>> projection({"kind": "Pod", "spec": {}, "status": {"conditions": [{"type": "Ready", "message": "is ready"}]}})
    {'kind': 'Pod', 'status': {'conditions': [{'type': 'Ready'}]}}
    """

    def __init__(self, *paths: str | Path) -> None:
        named = tuple(parse(path) if isinstance(path, str) else path for path in (*IDENTITY, *paths))
        self.paths: Final = tuple(dict.fromkeys(named))
        self._tree: Final = _tree(self.paths)

    def __call__(self, obj: JSONObject, share: Share = str) -> JSONObject:
        """Return the kept fields of the object; `share` replaces each string by an equal, shared one."""
        kept: JSONObject = _keep(obj, self._tree, share)
        return kept

    def __or__(self, other: "Projection") -> "Projection":
        """Return the projection that keeps the fields of both."""
        return Projection(*self.paths, *other.paths)

    def covers(self, path: Path) -> bool:
        """Return whether a value at this path, with all that is below it, is kept."""
        return any(path[: len(kept)] == kept for kept in self.paths)


Keep: TypeAlias = Callable[[JSONObject], Projection]
"""Returns the projection for an object."""


def either(one: Keep | None, other: Keep | None) -> Keep | None:
    """Return a `Keep` of the fields that at least one of two readers needs; None keeps whole objects."""
    if one is other or one is None or other is None:
        return one if one is other else None
    united = cache(Projection.__or__)
    return lambda obj: united(one(obj), other(obj))


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
            raise ValueError(f"path {text!r}: {text[position:]!r}: want a field, [] or ['key']")
        steps.append(next(step for step in match.groups() if step is not None))
        position = match.end()
    return tuple(steps)


def shared(value: JSON, share: Share, levels: int = DEPTH) -> JSON:
    """Return an equal value whose strings and keys come from `share`; below `levels` it stays unchanged."""
    if isinstance(value, str):
        return share(value)
    if isinstance(value, dict) and levels:
        return {share(name): shared(child, share, levels - 1) for name, child in value.items()}
    if isinstance(value, list) and levels:
        return [shared(item, share, levels - 1) for item in value]
    return value


def _tree(paths: Iterable[Path]) -> _Tree:
    tree: dict[str, Any] = {}
    for path in sorted(paths, key=len):
        below: dict[str, Any] | None = tree
        for step in path[:-1]:
            below = None if below is None else below.setdefault(step, {})
        if below is not None and below.get(path[-1], ...) is not None:
            below[path[-1]] = None
    return tree


def _keep(value: JSON, tree: _Tree | None, share: Share) -> JSON:
    if tree is not None and isinstance(value, dict) and ITEMS not in tree:
        return {name: _keep(value[name], below, share) for name, below in tree.items() if name in value}
    if tree is not None and isinstance(value, list) and ITEMS in tree:
        return [_keep(item, tree[ITEMS], share) for item in value]
    return shared(value, share)
