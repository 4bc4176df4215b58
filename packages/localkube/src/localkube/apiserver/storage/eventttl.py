"""Deletes events one hour after their last write, as in kube-apiserver, so that the store remains small.

The number of events is also limited. If there are more than `LIMIT`, the oldest events are deleted. Old events are
deleted when a new event is committed, so an idle cluster does nothing. Ages are measured with the monotonic clock, so
that setting the wall clock has no effect on events.

A write of an event needs 16 bytes of memory, for its revision and time. The store is read to determine whether it is
the event's last write.
"""

from array import array
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from kuberuntime.clock import Clock
from kuberuntime.objects import timestamps
from kuberuntime.objects.resources import CORE_EVENTS
from localkube.apiserver.storage.store import Change, Store

LIFETIME: Final = timedelta(hours=1)
LIMIT: Final = 5000
"""The maximum number of events in the cluster. Each event has about 1 KiB in the file."""

STORED_AS: Final = CORE_EVENTS.group_resource


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    creation_timestamp: str


class _Stored(msgspec.Struct):
    """The fields of stored events that are read at the start."""

    metadata: _Metadata


class EventTTL:
    """Deletes old events, and the oldest events above `limit`."""

    def __init__(self, store: Store, clock: Clock, *, limit: int = LIMIT) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._total = 0
        self._revisions = array("q")
        self._moments = array("d")
        """The monotonic time of each revision in seconds, in ascending order."""

    def load(self) -> None:
        """Read the stored events, and delete events that exceed the age or number limit."""
        now, moment = self._clock.now(), self._clock.monotonic()
        rows = (msgspec.json.decode(row, type=_Stored).metadata for row in self._store.list(STORED_AS))
        for revision, created in sorted((int(row.resource_version), row.creation_timestamp) for row in rows):
            self._revisions.append(revision)
            self._moments.append(moment - max((now - timestamps.parse(created)).total_seconds(), 0.0))
        self._total = len(self._revisions)
        self._expire()

    def observe(self, changes: Sequence[Change]) -> None:
        """Record committed events, and delete events that exceed the age or number limit."""
        touched = [change for change in changes if change.key.resource == STORED_AS]
        for change in touched:
            self._total += {"ADDED": 1, "MODIFIED": 0, "DELETED": -1}[change.type]
            if change.type != "DELETED":
                self._revisions.append(change.revision)
                self._moments.append(self._clock.monotonic())
        if touched:
            self._expire()

    def _expire(self) -> None:
        before = self._clock.monotonic() - LIFETIME.total_seconds()
        excess, passed = self._total - self._limit, 0
        for revision, moment in zip(self._revisions, self._moments, strict=True):
            if moment > before and excess <= 0:
                break
            passed += 1
            last = self._store.current_object(revision)
            if last is not None:
                self._store.delete(*last)
                excess -= 1
        del self._revisions[:passed], self._moments[:passed]
