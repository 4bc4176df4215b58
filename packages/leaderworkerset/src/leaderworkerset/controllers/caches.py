"""Declares caches, and opens each selection once, even if several controllers read it.

Input: the declarations of all controllers. Output: one informer for each selection, with the indexes of all its
readers.
"""

import asyncio
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from kuberuntime.cache.cache import Indexer
from kuberuntime.cache.informer import Informer
from kuberuntime.cache.projection import Keep, merge_keeps
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.policyrules import Permission


class Cache(Struct, frozen=True):
    """A declaration of cached objects, with the cached fields and the indexes.

    An `is_optional` cache is empty if the API server does not serve the kind. Other caches wait for the kind. If
    `served` is set, the kind is requested again only while that event is set, by a controller that watches CRDs.
    """

    selection: Selection
    indexes: Mapping[str, Indexer] = field(default_factory=dict)
    keep: Keep | None = None
    is_optional: bool = False
    served: asyncio.Event | None = None

    @property
    def permission(self) -> Permission:
        """Return the permission to list and watch the objects, restricted to a name if there is only one object."""
        return Permission(
            self.selection.resource, ("list", "watch"), names=(self.selection.name,) if self.selection.name else ()
        )

    def open(self, client: Client) -> Informer:
        """Return an informer that maintains the cache while it runs."""
        return Informer(
            client, self.selection, indexes=self.indexes, keep=self.keep, optional=self.is_optional, served=self.served
        )

    def merge(self, other: "Cache") -> "Cache":
        """Return a cache for the readers of both caches, which have the same selection."""
        for name in self.indexes.keys() & other.indexes.keys():
            if self.indexes[name] is not other.indexes[name]:
                raise ValueError(
                    f"caches of {self.selection.resource.group_resource}: index {name!r} is declared with two functions. "
                    "Rename one of them"
                )
        indexes, keep = {**self.indexes, **other.indexes}, merge_keeps(self.keep, other.keep)
        return Cache(self.selection, indexes, keep, self.is_optional and other.is_optional, self.served or other.served)


class Caches:
    """The open caches of a process. `caches[POD_CACHE]` is the informer for a declaration."""

    def __init__(self, client: Client, declared: Iterable[Cache]) -> None:
        by_selection: dict[Selection, Cache] = {}
        for cache in declared:
            known = by_selection.get(cache.selection)
            by_selection[cache.selection] = cache if known is None else known.merge(cache)
        self._informers = {selection: cache.open(client) for selection, cache in by_selection.items()}

    def __getitem__(self, cache: Cache) -> Informer:
        return self._informers[cache.selection]

    def all(self) -> tuple[Informer, ...]:
        """Return all informers in the order of their declarations."""
        return tuple(self._informers.values())
