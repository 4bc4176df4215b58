"""Blocks a key until the caches contain the writes of its last plan, so that a controller reads its own writes.

Input: the writes of a plan (`executor.py`), and the informers that the next plan reads. Output: `holds(key)`, and a
call of `release` when the key is no longer blocked. Otherwise, a plan based on an outdated cache would create,
restart or number objects twice.

When has a write been observed?

- If an object was written at version N, the informer must have received version N of that kind or a later one. A no-op
  apply returns an older version, so there is no wait.
- If an object was deleted, the store must no longer contain its UID, or contain it as terminating.
- If the kind has no informer, immediately, because no cache can be stale.

Versions of one kind are compared as integers (guaranteed since Kubernetes 1.35, and true for etcd before). If they
are not integers, or if the informer does not select the object, `PATIENCE` limits the wait. Then the informer lists
all objects again, and a list that started after the write contains the object. Every key is therefore released after
the API server responds.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Final

import structlog
from msgspec import Struct, field

from kuberuntime.cache.informer import Informer
from kuberuntime.controller.writes import ObjectRemoval, ObjectWrite, Write
from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import ObjectKey, ResourceVersion

PATIENCE: Final = 10.0
"""The seconds after which the informers of a blocked key list all objects again."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Hold(Struct, eq=False):
    """A blocked key. `open` contains the number of writes that each informer has not observed."""

    key: ObjectKey
    open: Counter[Informer]
    timer: asyncio.TimerHandle | None = None


class _Gate(Struct):
    """The unobserved writes of an informer. Writes with comparable versions are in ascending order."""

    by_version: list[tuple[int, int, _Hold]] = field(default_factory=list)
    others: list[tuple[Write, _Hold]] = field(default_factory=list)


class Expectations:
    """Blocks keys until the informers have observed their writes, and then calls `release` with the key."""

    def __init__(
        self, informers: Iterable[Informer], release: Callable[[ObjectKey], None], *, patience: float = PATIENCE
    ) -> None:
        self._release = release
        self._patience = patience
        self._holds: dict[ObjectKey, _Hold] = {}
        self._order = count()
        self._gates = {informer: _Gate() for informer in informers}
        for informer, gate in self._gates.items():
            informer.on_progress(partial(self._check, informer, gate))

    def is_waiting(self, key: ObjectKey) -> bool:
        """Return whether the key is waiting for a cache."""
        return key in self._holds

    def expect(self, key: ObjectKey, writes: Sequence[Write]) -> None:
        """Block `key` until all these writes are observed, unless they have already been observed."""
        hold = self._holds.get(key) or _Hold(key, Counter())
        for write in writes:
            for informer, gate in self._gates.items():
                if informer.resource == write.resource and not is_observed(informer, write):
                    self._await(hold, informer, gate, write)
        if hold.open:
            self._holds[key] = hold
            self._start_timer(hold)

    def close(self) -> None:
        """Cancel the timers."""
        for hold in self._holds.values():
            if hold.timer is not None:
                hold.timer.cancel()
        self._holds.clear()

    def _await(self, hold: _Hold, informer: Informer, gate: _Gate, write: Write) -> None:
        hold.open[informer] += 1
        version = _number(write.version) if isinstance(write, ObjectWrite) else None
        if version is None:
            gate.others.append((write, hold))
        else:
            heapq.heappush(gate.by_version, (version, next(self._order), hold))

    def _check(self, informer: Informer, gate: _Gate) -> None:
        current = _number(informer.version)
        while current is not None and gate.by_version and gate.by_version[0][0] <= current:
            self._observe(heapq.heappop(gate.by_version)[2], informer)
        if gate.others:
            others, gate.others = gate.others, []
            for write, hold in others:
                if is_observed(informer, write):
                    self._observe(hold, informer)
                elif informer in hold.open:
                    gate.others.append((write, hold))

    def _observe(self, hold: _Hold, informer: Informer) -> None:
        if informer in hold.open:  # otherwise a new list has already released it
            hold.open[informer] -= 1
            if not hold.open[informer]:
                self._handle_observed(hold, informer)

    def _handle_observed(self, hold: _Hold, informer: Informer) -> None:
        """Record that an informer has observed the writes of a key. Release the key after its last informer."""
        hold.open.pop(informer, None)
        if not hold.open and self._holds.get(hold.key) is hold:
            del self._holds[hold.key]
            if hold.timer is not None:
                hold.timer.cancel()
            self._release(hold.key)

    def _start_timer(self, hold: _Hold) -> None:
        if hold.timer is not None:
            hold.timer.cancel()
        hold.timer = asyncio.get_running_loop().call_later(self._patience, self._relist_late_informers, hold)

    def _relist_late_informers(self, hold: _Hold) -> None:
        """Request a new list from informers that are late. Informers with a list in progress have more time."""
        behind = [informer for informer in hold.open if not informer.is_relisting]
        log.warning(
            "the cache does not contain a previous write yet",
            key=str(hold.key),
            kinds=[informer.resource.kind for informer in hold.open],
        )
        self._start_timer(hold)
        for informer in behind:
            informer.relist(partial(self._handle_observed, hold, informer))


def is_observed(informer: Informer, write: Write) -> bool:
    """Return whether the informer's store reflects a write."""
    cached = informer.store.get(write.key)
    match write:
        case ObjectRemoval(uid=uid):
            return cached is None or (uid is not None and meta.uid(cached) != uid) or meta.is_deleting(cached)
        case ObjectWrite(version=version):
            expected, current = _number(version), _number(informer.version)
            if expected is not None and current is not None:
                return current >= expected
            return cached is not None and meta.resource_version(cached) == version


def _number(version: ResourceVersion) -> int | None:
    return decimals.natural(version)
