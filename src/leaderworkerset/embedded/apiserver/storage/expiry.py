"""Events are forgotten an hour after they were last written, as kube-apiserver does, so that the store stays small.

Old ones are looked for when a new one is committed; a cluster at rest does nothing.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

import msgspec

from leaderworkerset.api import meta, timestamps
from leaderworkerset.api.resources import CORE_EVENTS
from leaderworkerset.embedded.apiserver.storage.store import Change, Store, StoreKey
from leaderworkerset.kube.clock import Clock

LIFETIME: Final = timedelta(hours=1)
STORED_AS: Final = CORE_EVENTS.group_resource


class Expiry:
    """Deletes old events."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._written: dict[StoreKey, datetime] = {}  # oldest first

    def load(self) -> None:
        """Learn of the events that are stored."""
        events = [msgspec.json.decode(row) for row in self._store.list(STORED_AS)]
        for event in sorted(events, key=lambda event: str(meta.metadata(event)["creationTimestamp"])):
            written = timestamps.parse(meta.metadata(event)["creationTimestamp"])
            self._written[StoreKey(STORED_AS, *meta.key(event))] = written

    def observe(self, changes: Sequence[Change]) -> None:
        """Learn of committed events, and delete those that are too old by now."""
        touched = [change for change in changes if change.key.resource == STORED_AS]
        for change in touched:
            self._written.pop(change.key, None)
            if change.type != "DELETED":
                self._written[change.key] = self._clock.now()
        if touched:
            self._expire(self._clock.now() - LIFETIME)

    def _expire(self, before: datetime) -> None:
        old = [key for key, _ in takewhile(lambda item: item[1] <= before, self._written.items())]
        for key in old:
            del self._written[key]
            event = self._store.get(key)
            if event is not None:
                self._store.delete(key, event)
