"""Events are forgotten an hour after they were last written, as kube-apiserver does, so that the store stays small.

They are also bounded in number: beyond `LIMIT` the oldest event of the namespace that has most of them goes, so that
a namespace with very many events does not displace those of others. Old ones are looked for when a new one is committed; a
cluster at rest does nothing. Their ages are those of the monotonic clock, so that setting the wall clock neither deletes
an event nor keeps it for ever.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import takewhile
from typing import Final

import msgspec

from kuberuntime.clock import Clock
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.resources import CORE_EVENTS
from localkube.apiserver.storage.store import Change, Store, StoreKey

LIFETIME: Final = timedelta(hours=1)
LIMIT: Final = 5000
"""Events of the whole cluster, about 1 KiB each."""

STORED_AS: Final = CORE_EVENTS.group_resource


class Expiry:
    """Deletes old events, and those beyond `limit`."""

    def __init__(self, store: Store, clock: Clock, *, limit: int = LIMIT) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._total = 0
        self._written: dict[str, dict[str, float]] = {}  # monotonic, by namespace and name, oldest first

    def load(self) -> None:
        """Read the stored events, and delete those that are too old or too many."""
        now, moment = self._clock.now(), self._clock.monotonic()
        events = [msgspec.json.decode(row) for row in self._store.list(STORED_AS)]
        for event in sorted(events, key=lambda event: int(meta.resource_version(event))):
            written = timestamps.parse(meta.metadata(event)["creationTimestamp"])
            age = max((now - written).total_seconds(), 0.0)
            self._note(StoreKey(STORED_AS, *meta.key(event)), moment - age)
        self._expire()

    def observe(self, changes: Sequence[Change]) -> None:
        """Record committed events, and delete those that are too old or too many by now."""
        touched = [change for change in changes if change.key.resource == STORED_AS]
        for change in touched:
            self._forget(change.key)
            if change.type != "DELETED":
                self._note(change.key, self._clock.monotonic())
        if touched:
            self._expire()

    def _note(self, key: StoreKey, written: float) -> None:
        self._written.setdefault(key.namespace, {})[key.name] = written
        self._total += 1

    def _forget(self, key: StoreKey) -> None:
        names = self._written.get(key.namespace, {})
        if names.pop(key.name, None) is not None:
            self._total -= 1
            if not names:
                del self._written[key.namespace]

    def _expire(self) -> None:
        before = self._clock.monotonic() - LIFETIME.total_seconds()
        for key in list(self._old(before)):
            self._delete(key)
        while self._total > self._limit:
            namespace, names = max(self._written.items(), key=lambda item: len(item[1]))
            self._delete(StoreKey(STORED_AS, namespace, next(iter(names))))

    def _old(self, before: float) -> Iterator[StoreKey]:
        for namespace, names in self._written.items():
            for name, _ in takewhile(lambda item: item[1] <= before, names.items()):
                yield StoreKey(STORED_AS, namespace, name)

    def _delete(self, key: StoreKey) -> None:
        self._forget(key)
        event = self._store.get(key)
        if event is not None:
            self._store.delete(key, event)
