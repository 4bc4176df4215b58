"""Deletes events an hour after their last write, as in kube-apiserver, so that the store stays small.

Their number is bounded, too: above `LIMIT`, the oldest event of the namespace with most events is deleted, so that a
namespace with very many events does not displace those of others. Old events are deleted when a new one is committed;
an idle cluster does nothing. Ages are measured by the monotonic clock, so that setting the wall clock neither deletes
events nor keeps them.

In memory an event takes 16 bytes, the revision that wrote it and the time; its name is read from the store.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from kuberuntime.clock import Clock
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from localkube.apiserver.storage.store import Change, Store

LIFETIME: Final = timedelta(hours=1)
LIMIT: Final = 5000
"""Events of the whole cluster, about 1 KiB each, in the file."""

STORED_AS: Final = CORE_EVENTS.group_resource


class _Metadata(msgspec.Struct, rename="camel"):
    namespace: str
    resource_version: str
    creation_timestamp: str


class _Stored(msgspec.Struct):
    """The parts of a stored event that are read at the start."""

    metadata: _Metadata


class Ages:
    """The ages of the events in one namespace, oldest first: revisions, and the monotonic seconds of each."""

    def __init__(self) -> None:
        self._revisions = array("q")
        self._moments = array("d")

    def __len__(self) -> int:
        return len(self._revisions)

    def add(self, revision: int, moment: float) -> None:
        """Add an event; revisions must be ascending."""
        self._revisions.append(revision)
        self._moments.append(moment)

    def discard(self, revision: int) -> bool:
        """Remove an event; return whether it was present."""
        place = bisect_left(self._revisions, revision)
        if place == len(self) or self._revisions[place] != revision:
            return False
        del self._revisions[place], self._moments[place]
        return True

    def oldest(self) -> tuple[int, float]:
        """Return the revision and the time of the oldest event."""
        return self._revisions[0], self._moments[0]


class Expiry:
    """Deletes old events, and those above `limit`."""

    def __init__(self, store: Store, clock: Clock, *, limit: int = LIMIT) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._total = 0
        self._written: dict[str, Ages] = {}  # by namespace

    def load(self) -> None:
        """Read the stored events, and delete those that are too old or too many."""
        now, moment = self._clock.now(), self._clock.monotonic()
        rows = (msgspec.json.decode(row, type=_Stored).metadata for row in self._store.list(STORED_AS))
        stored = sorted((int(row.resource_version), row.namespace, row.creation_timestamp) for row in rows)
        for revision, namespace, created in stored:
            age = max((now - timestamps.parse(created)).total_seconds(), 0.0)
            self._note(namespace, revision, moment - age)
        self._expire()

    def observe(self, changes: Sequence[Change]) -> None:
        """Record committed events, and delete those that are now too old or too many."""
        touched = [change for change in changes if change.key.resource == STORED_AS]
        for change in touched:
            if change.previous is not None:
                self._forget(change.key.namespace, _revision(change.previous))
            if change.type != "DELETED":
                self._note(change.key.namespace, change.revision, self._clock.monotonic())
        if touched:
            self._expire()

    def _note(self, namespace: str, revision: int, written: float) -> None:
        self._written.setdefault(namespace, Ages()).add(revision, written)
        self._total += 1

    def _forget(self, namespace: str, revision: int) -> None:
        ages = self._written.get(namespace)
        if ages is not None and ages.discard(revision):
            self._total -= 1
            if not ages:
                del self._written[namespace]

    def _expire(self) -> None:
        before = self._clock.monotonic() - LIFETIME.total_seconds()
        for namespace, ages in list(self._written.items()):
            while ages and ages.oldest()[1] <= before:
                self._delete_oldest(namespace)
        while self._total > self._limit:
            self._delete_oldest(max(self._written, key=lambda namespace: len(self._written[namespace])))

    def _delete_oldest(self, namespace: str) -> None:
        revision, _ = self._written[namespace].oldest()
        self._forget(namespace, revision)
        found = self._store.living(revision)
        if found is not None:
            self._store.delete(*found)


def _revision(event: JSONObject) -> int:
    return int(meta.resource_version(event))
