"""The informer: a shared, current copy of the objects of a selection, and a notification of every change.

It connects the watch (`watching.py`) to the cache (`cache.py`): outputs of the watch go into the store first, then to
the subscribers, then to the observers of its version (`barrier.py`). An object that cannot be decoded or projected, or
that an index or a subscriber fails on, is ignored: it is logged and counted, and counts as absent for all.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import structlog

from kuberuntime.cache import projection, watch
from kuberuntime.cache.cache import Change, Indexer, Store, Writer
from kuberuntime.cache.decoding import Decoder
from kuberuntime.cache.projection import SHARED, Keep
from kuberuntime.cache.watching import Watcher
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import Resource

__all__ = ["Change", "Informer", "Store"]

Subscriber: TypeAlias = Callable[[Change], None]

MOST_NAMED: Final = 1000
"""The maximum number of ignored objects that are named in the log, and to observers; further ones are only counted."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

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
        self.ignored = 0
        """How often an object was ignored, for metrics."""
        self._keep = keep
        self._indexers = tuple(indexes.values())
        self._writer = Writer(indexes)
        decode = projection.decode if keep is None else projection.decoding(keep)
        decoder = Decoder(self.resource, decode, self._reduce, self._ignore)
        self._watcher = Watcher(client, selection, self._take, decoder, optional=optional, served=served)
        self._synced = asyncio.Event()
        self._subscribers: list[Subscriber] = []
        self._observers: list[Callable[[], None]] = []
        self._on_listed: list[Callable[[], None]] = []
        self._on_ignored: list[Callable[[JSONObject], None]] = []
        self._reported_keys: set[ObjectKey] = set()

    @property
    def store(self) -> Store:
        """Return the read side of the cache."""
        return self._writer

    @property
    def is_served(self) -> bool:
        """Return whether the API server served the kind when it was last read."""
        return bool(self.version)

    @property
    def last_received(self) -> float | None:
        """Return the time of the event loop when the API server last sent anything about this kind, None before."""
        return self._watcher.last_received

    @property
    def watch_state(self) -> watch.State:
        """Return the state of the watch."""
        return self._watcher.state

    @property
    def is_relisting(self) -> bool:
        """Return whether a listing requested by `relist` has not completed yet."""
        return bool(self._on_listed)

    def subscribe(self, callback: Subscriber) -> None:
        """Call back on every change from now on, and at once for each known object, as an addition."""
        self._subscribers.append(callback)
        for obj in self.store.list():
            self._publish(Change(None, obj), (callback,))

    def on_ignored(self, callback: Callable[[JSONObject], None]) -> None:
        """Call back once for each ignored object; possibly, only its metadata is known."""
        self._on_ignored.append(callback)

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
        """Return the kept fields of a newly decoded object, which may be modified; raise if it cannot be indexed."""
        if self._keep is not None:
            obj = SHARED.shared(obj, self.store.get(meta.key(obj)))
        else:
            obj["metadata"].pop("managedFields", None)
        for indexer in self._indexers:
            tuple(indexer(obj))
        return obj

    def _take(self, outputs: Sequence[watch.Output]) -> None:
        for output in outputs:
            for change in self._writer.take(output):
                self._publish(change, self._subscribers)
            self._note(output)
        for observer in self._observers:
            observer()

    def _publish(self, change: Change, subscribers: Sequence[Subscriber]) -> None:
        """Notify subscribers; if one fails, the object is absent from now on."""
        failure: Exception | None = None
        for callback in subscribers:
            try:
                callback(change)
            except Exception as error:  # noqa: BLE001 - edge: anything may be stored in an object
                failure = error
        if failure is not None:
            self._ignore(change.object, failure)
            if change.new is not None:
                for gone in self._writer.take(watch.Hidden(change.new)):
                    self._publish(gone, self._subscribers)

    def _ignore(self, obj: JSONObject, error: Exception) -> None:
        """Count an object that is ignored, and name it once."""
        self.ignored += 1
        key = meta.key(obj)
        if key in self._reported_keys or len(self._reported_keys) >= MOST_NAMED:
            return
        self._reported_keys.add(key)
        bound = log.bind(resource=self.resource.group_resource, key=str(key))
        bound.warning("object ignored", error=repr(error))
        bound.debug("object ignored at", exc_info=error)
        for callback in self._on_ignored:
            callback(obj)

    def _note(self, output: watch.Output) -> None:
        match output:
            case watch.Applied(obj) | watch.Deleted(obj) | watch.Hidden(obj):
                self.version = meta.resource_version(obj)
            case watch.Progressed(version):
                self.version = version
            case watch.Completed(version):
                self.version = version
                self._synced.set()
                callbacks, self._on_listed = self._on_listed, []
                for callback in callbacks:
                    callback()
