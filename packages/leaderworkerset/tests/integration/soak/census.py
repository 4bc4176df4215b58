"""Counts the items in all objects of this process, by attribute.

The collector's own list is not enough: it does not track a dict of texts and numbers, which is what most caches are. So
the attributes of our objects are read, tracked or not.
"""

import gc
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, Final

OURS: Final = ("kuberuntime", "leaderworkerset", "localkube", "lwsctl")
HOLDERS: Final = (dict, list, set, deque)


def held() -> Counter[str]:
    """Return the number of items in each attribute of the project's types, for all objects of the type."""
    sizes: Counter[str] = Counter()
    for owner in _ours():
        for attribute, value in _attributes(owner):
            if isinstance(value, HOLDERS):
                sizes[f"{_name(owner)}.{attribute}"] += len(value) + sum(
                    len(one) for one in _values(value) if isinstance(one, HOLDERS)
                )
    return sizes


def types() -> Counter[str]:
    """Return the number of objects of each of the project's types."""
    return Counter(_name(one) for one in _ours())


def _ours() -> Iterator[Any]:
    gc.collect()
    return (one for one in gc.get_objects() if type(one).__module__.startswith(OURS) and not isinstance(one, type))


def _name(owner: object) -> str:
    return f"{type(owner).__module__}.{type(owner).__qualname__}"


def _attributes(owner: object) -> Iterator[tuple[str, object]]:
    slots = [getattr(kind, "__slots__", ()) for kind in type(owner).__mro__]
    names = {name for some in slots for name in ([some] if isinstance(some, str) else some)}
    yield from list(getattr(owner, "__dict__", {}).items())
    yield from ((name, getattr(owner, name)) for name in names - {"__dict__", "__weakref__"} if hasattr(owner, name))


def _values(holder: Any) -> list[object]:
    return list(holder.values() if isinstance(holder, dict) else holder)
