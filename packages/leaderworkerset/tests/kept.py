"""Repeats decisions with the fields of foreign objects in the caches (`leaderworkerset.controllers.cachedfields`).

`checked(decision)` decides three times, with the same result: with the original objects, with objects that record the
paths that are read, and with the declared paths alone. Each path that is read must be declared.
"""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, Final, ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

from kuberuntime.cache.projection import ITEMS, Keep, Path, Projection
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.controllers import cachedfields

P = ParamSpec("P")
R = TypeVar("R")

KEEP: Final[dict[str, Keep]] = {
    "ControllerRevision": cachedfields.same_fields(cachedfields.REVISION),
    "Deployment": cachedfields.same_fields(cachedfields.DEPLOYMENT),
    "Pod": cachedfields.same_fields(cachedfields.POD),
    "PodGroup": cachedfields.same_fields(cachedfields.GANG_OBJECT),
    "Service": cachedfields.same_fields(cachedfields.SERVICE),
    "StatefulSet": cachedfields.statefulset_fields,
    "Workload": cachedfields.same_fields(cachedfields.GANG_OBJECT),
}

DECIDING: Final = ContextVar("deciding", default=False)
"""Whether a decision is being checked. Nested decisions belong to it."""

EVERYTHING: Final = "*"
"""The path element of a read of all fields of an object, for example in a copy or a loop."""


class UndeclaredReadError(AssertionError):
    """A decision read a field that the caches do not contain."""


class Reads:
    """The paths of one object that were read."""

    def __init__(self, obj: JSONObject, projection: Projection) -> None:
        self.projection = projection
        self.kind = obj["kind"]
        self.paths: set[Path] = set()

    def undeclared(self) -> list[str]:
        """Return the paths that are read but not cached. Reading a parent object does not count."""
        lacking = [path for path in self.paths if not is_declared(self.projection, path)]
        return sorted(f"{self.kind} {' '.join(path)}" for path in lacking)


@cache
def is_declared(projection: Projection, path: Path) -> bool:
    """Return whether a path is cached, or leads to a cached path. The result is cached."""
    return projection.covers(path) or any(kept[: len(path)] == path for kept in projection.paths if kept != path)


class TrackedObject(dict[str, Any]):
    """An object that records its reads."""

    def __init__(self, value: JSONObject, path: Path, reads: Reads) -> None:
        super().__init__(value)
        self._path, self._reads = path, reads

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return tracked(super().__getitem__(name), (*self._path, name), self._reads)

    def get(self, name: str, default: Any = None) -> Any:
        self._note(name)
        return self[name] if super().__contains__(name) else default

    def __contains__(self, name: object) -> bool:
        self._note(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self._note(EVERYTHING)
        return super().__iter__()

    def keys(self) -> Any:
        self._note(EVERYTHING)
        return super().keys()

    def values(self) -> Any:
        self._note(EVERYTHING)
        return [self[name] for name in list(super().__iter__())]

    def items(self) -> Any:
        self._note(EVERYTHING)
        return [(name, self[name]) for name in list(super().__iter__())]

    def __or__(self, other: Any) -> Any:
        self._note(EVERYTHING)
        return dict(self.items()) | other

    def __ror__(self, other: Any) -> Any:
        self._note(EVERYTHING)
        return other | dict(self.items())

    def __eq__(self, other: object) -> bool:
        self._note(EVERYTHING)
        return super().__eq__(other)

    __hash__ = None

    def _note(self, step: str) -> None:
        self._reads.paths.add((*self._path, step))


class TrackedList(list[Any]):
    """A list whose items record their reads."""

    def __init__(self, value: Iterable[Any], path: Path, reads: Reads) -> None:
        super().__init__(tracked(item, (*path, ITEMS), reads) for item in value)


def tracked(value: JSON, path: Path, reads: Reads) -> JSON:
    """Return the value with recorded reads."""
    if isinstance(value, dict):
        return TrackedObject(value, path, reads)
    return TrackedList(value, path, reads) if isinstance(value, list) else value


def checked(decision: Callable[P, R]) -> Callable[P, R]:
    """Return a function that decides three times. Nested decisions belong to it."""

    @wraps(decision)
    def decide(*arguments: P.args, **named: P.kwargs) -> R:
        if DECIDING.get():
            return decision(*arguments, **named)
        token = DECIDING.set(True)
        try:
            return decide_thrice(*arguments, **named)
        finally:
            DECIDING.reset(token)

    def decide_thrice(*arguments: P.args, **named: P.kwargs) -> R:
        reads: list[Reads] = []

        def track(obj: JSONObject, keep: Keep) -> JSONObject:
            reads.append(Reads(obj, keep(obj)))
            return TrackedObject(obj, (), reads[-1])

        result = decision(*arguments, **named)
        given = [mapped(argument, track) for argument in arguments]
        decision(*given, **{name: mapped(value, track) for name, value in named.items()})
        assert_declared(reads)
        less = [mapped(argument, reduced) for argument in arguments]
        other = decision(*less, **{name: mapped(value, reduced) for name, value in named.items()})
        assert mapped(other, reduced) == mapped(result, reduced), "the caches keep too little: another decision"
        return result

    return decide


def assert_declared(reads: Iterable[Reads]) -> None:
    """Raise an error if a path was read that the caches do not contain."""
    undeclared = sorted({line for one in reads for line in one.undeclared()})
    if undeclared:
        raise UndeclaredReadError(
            f"not declared in leaderworkerset/controllers/cachedfields.py: {', '.join(undeclared)}"
        )


def reduced(obj: JSONObject, keep: Keep) -> JSONObject:
    """Return the cached fields."""
    return keep(obj)(obj)


def mapped(value: Any, change: Callable[[JSONObject, Keep], JSONObject]) -> Any:
    """Return an observation with every foreign object in it changed."""
    if isinstance(value, dict):
        keep = KEEP.get(value.get("kind", ""))
        return value if keep is None or isinstance(value, TrackedObject) else change(value, keep)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, Struct):
        changed = {one.name: mapped(getattr(value, one.name), change) for one in fields(value)}
        return replace(value, **changed)
    return value
