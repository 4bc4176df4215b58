"""Maintains a shared, current cache of selected objects, and notifies subscribers of changes.

It connects the watch (`reflector.py`) to the cache (`cache.py`): outputs of the watch are stored first, then passed to
the subscribers, then to the observers of its version (`expectations.py`). If an object cannot be decoded or projected, or if
an index or a subscriber fails on it, the object is ignored. It is logged and counted, and treated as absent.
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
from kuberuntime.cache.reflector import Reflector
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import Resource

__all__ = ["Change", "Informer", "Store"]

Subscriber: TypeAlias = Callable[[Change], None]

MOST_NAMED: Final = 1000
"""The maximum number of ignored objects that are logged and reported to observers. Other objects are only counted."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

NO_INDEXES: Final[Mapping[str, Indexer]] = MappingProxyType({})


class Informer:
    """Maintains all or selected objects of a kind in `store`.

    `keep` returns the projection of an object, which declares the fields to keep. Without `keep`, all fields are kept
    except `metadata.managedFields`, which needs as much memory as the rest of a pod. If an `optional` kind is not
    served, the store is empty. If `served` is set, the kind is requested again only while that event is set.
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
        """The number of times that an object was ignored, for metrics."""
        self._keep = keep
        self._writer = Writer(indexes)
        decode = projection.decode if keep is None else projection.build_decoder(keep)
        decoder = Decoder(self.resource, decode, self._reduce, self._ignore)
        self._watcher = Reflector(client, selection, self._apply_outputs, decoder, optional=optional, served=served)
        self._synced = asyncio.Event()
        self._subscribers: list[Subscriber] = []
        self._observers: list[Callable[[], None]] = []
        self._on_listed: list[Callable[[], None]] = []
        self._on_ignored: list[Callable[[JSONObject], None]] = []
        self._reported_keys: set[ObjectKey] = set()

    @property
    def store(self) -> Store:
        """Return the read interface of the cache."""
        return self._writer

    @property
    def is_served(self) -> bool:
        """Return whether the API server served the kind when it was last requested."""
        return bool(self.version)

    @property
    def last_received(self) -> float | None:
        """Return the event loop time at which data of this kind last arrived, or None if there was no data."""
        return self._watcher.last_received

    @property
    def watch_state(self) -> watch.State:
        """Return the state of the watch."""
        return self._watcher.state

    @property
    def is_relisting(self) -> bool:
        """Return whether a list requested by `relist` is still incomplete."""
        return bool(self._on_listed)

    def subscribe(self, callback: Subscriber) -> None:
        """Invoke the callback for each known object as an addition, and then for each change."""
        self._subscribers.append(callback)
        for obj in self.store.list():
            self._publish(Change(None, obj), (callback,))

    def on_ignored(self, callback: Callable[[JSONObject], None]) -> None:
        """Invoke the callback once for each ignored object, which may contain only its metadata."""
        self._on_ignored.append(callback)

    def on_progress(self, callback: Callable[[], None]) -> None:
        """Invoke the callback after each batch, after subscribers have received all changes up to `version`."""
        self._observers.append(callback)

    def relist(self, then: Callable[[], None]) -> None:
        """List all objects again. Invoke the callback when the store contains a list that started after this call."""
        self._on_listed.append(then)
        self._watcher.relist()

    async def run(self, *, gives_up: bool = False) -> None:
        """Watch the objects until cancelled.

        With `gives_up`, raise an error if the user has no permission to watch them.
        """
        await self._watcher.run(gives_up=gives_up)

    async def wait_synced(self) -> None:
        """Wait until the store contains a complete list."""
        await self._synced.wait()

    def _reduce(self, obj: JSONObject) -> JSONObject:
        """Reduce a newly decoded object to the required fields. Raise an error if it cannot be indexed."""
        if self._keep is not None:
            obj = SHARED.deduplicate(obj, self.store.get(meta.key(obj)))
        else:
            obj["metadata"].pop("managedFields", None)
        self._writer.evaluate(obj)
        return obj

    def _apply_outputs(self, outputs: Sequence[watch.Output]) -> None:
        for output in outputs:
            for change in self._writer.apply(output):
                self._publish(change, self._subscribers)
            self._handle_output(output)
        for observer in self._observers:
            observer()

    def _publish(self, change: Change, subscribers: Sequence[Subscriber]) -> None:
        """Notify subscribers. If a subscriber fails, the object is treated as absent."""
        failure: Exception | None = None
        for callback in subscribers:
            try:
                callback(change)
            except Exception as error:  # noqa: BLE001 - edge: anything may be stored in an object
                failure = error
        if failure is not None:
            self._ignore(change.object, failure)
            if change.new is not None:
                for gone in self._writer.apply(watch.ObjectHidden(change.new)):
                    self._publish(gone, self._subscribers)

    def _ignore(self, obj: JSONObject, error: Exception) -> None:
        """Count an ignored object, and log it once."""
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

    def _handle_output(self, output: watch.Output) -> None:
        match output:
            case watch.ObjectApplied(obj) | watch.ObjectDeleted(obj) | watch.ObjectHidden(obj):
                self.version = meta.resource_version(obj)
            case watch.Bookmark(version):
                self.version = version
            case watch.ListCompleted(version):
                self.version = version
                self._synced.set()
                callbacks, self._on_listed = self._on_listed, []
                for callback in callbacks:
                    callback()
