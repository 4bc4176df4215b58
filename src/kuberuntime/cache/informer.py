"""The informer: a shared, current copy of the objects of a selection, and a notification of every change.

It connects the watch (`watching.py`) to the cache (`cache.py`): outputs of the watch go into the store first, then to
the subscribers, then to the observers of its version (`barrier.py`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from kuberuntime.cache import watch
from kuberuntime.cache.cache import Change, Indexer, Store, Writer
from kuberuntime.cache.projection import Keep
from kuberuntime.cache.strings import SHARED
from kuberuntime.cache.watching import Watcher
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ResourceVersion
from kuberuntime.objects.resources import Resource

__all__ = ["Change", "Informer", "Store"]

Subscriber: TypeAlias = Callable[[Change], None]


NO_INDEXES: Final[Mapping[str, Indexer]] = MappingProxyType({})


class Informer:
    """Keeps the objects of one kind, all of them or a selection, in `store`.

    `keep` returns the projection of an object: only the fields it declares are kept. Without `keep`, objects are kept
    whole except `metadata.managedFields`, which takes as much memory as the rest of a pod. An `optional` kind need not
    be served: the store stays empty until it is; with `served` it is requested again only while that event is set.
    """

    def __init__(
        self,
        client: Client,
        what: Resource | Selection,
        *,
        indexes: Mapping[str, Indexer] = NO_INDEXES,
        keep: Keep | None = None,
        optional: bool = False,
        served: asyncio.Event | None = None,
    ) -> None:
        selection = what if isinstance(what, Selection) else Selection(what)
        self.resource = selection.resource
        self.version = ResourceVersion("")
        self._keep = keep
        self._writer = Writer(indexes)
        self._watcher = Watcher(client, selection, self._take, self._reduce, optional=optional, served=served)
        self._synced = asyncio.Event()
        self._subscribers: list[Subscriber] = []
        self._observers: list[Callable[[], None]] = []
        self._on_listed: list[Callable[[], None]] = []

    @property
    def store(self) -> Store:
        """Return the read side of the cache."""
        return self._writer

    @property
    def has_synced(self) -> bool:
        """Return whether the store has been filled once."""
        return self._synced.is_set()

    @property
    def is_served(self) -> bool:
        """Return whether the API server served the kind when it was last read."""
        return bool(self.version)

    @property
    def is_relisting(self) -> bool:
        """Return whether a listing requested by `relist` has not completed yet."""
        return bool(self._on_listed)

    def subscribe(self, callback: Subscriber) -> None:
        """Call back on every change from now on, and at once for each known object, as an addition."""
        for obj in self.store.list():
            callback(Change(None, obj))
        self._subscribers.append(callback)

    def on_progress(self, callback: Callable[[], None]) -> None:
        """Call back after each batch of outputs, once subscribers were notified of the changes up to `version`."""
        self._observers.append(callback)

    def relist(self, then: Callable[[], None]) -> None:
        """Read everything again and call back once a listing that began after this call is in the store."""
        self._on_listed.append(then)
        self._watcher.relist()

    async def run(self, *, gives_up: bool = False) -> None:
        """Follow the objects until cancelled; with `gives_up`, raise the error if the user may not watch them."""
        await self._watcher.run(gives_up=gives_up)

    async def wait_synced(self) -> None:
        """Wait until the store has been filled once."""
        await self._synced.wait()

    def _reduce(self, obj: JSONObject) -> JSONObject:
        """Return the kept fields of a newly decoded object, which may be modified."""
        if self._keep is not None:
            return self._keep(obj)(obj, SHARED.share)
        obj["metadata"].pop("managedFields", None)
        return obj

    def _take(self, outputs: Sequence[watch.Output]) -> None:
        for output in outputs:
            for change in self._writer.take(output):
                for callback in self._subscribers:
                    callback(change)
            self._note(output)
        for observer in self._observers:
            observer()

    def _note(self, output: watch.Output) -> None:
        match output:
            case watch.Applied(obj) | watch.Deleted(obj):
                self.version = meta.resource_version(obj)
            case watch.Progressed(version):
                self.version = version
            case watch.Completed(version):
                self.version = version
                self._synced.set()
                listed, self._on_listed = self._on_listed, []
                for callback in listed:
                    callback()
