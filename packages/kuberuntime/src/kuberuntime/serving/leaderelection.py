"""Performs leader election with a Lease, so that a standby process acts if the leader fails.

`decide` contains all rules, as a function of the Lease and of the time when this process last observed a change. The
driver performs its decisions. Wall clocks of different processes are never compared. A holder is alive for the duration
of its lease after the last change that *this* process observed, by its own monotonic clock, as in client-go.

A leader renews with one write, based on its previous write. It reads the lease only after a conflict. A write without a
response continues while the leader may act, because the server may be slow for some time. As the response may be lost,
the leader sends a second write concurrently.

A leader is fenced by time. It may act until `ElectionSettings.tenure` after it *sent* its last successful renewal.
`fence.py` enforces this for its writes, even if the process was suspended. Because the tenure is shorter than the
lease, no other process can lead before it expires.
"""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias

import structlog
from msgspec import Struct

from kuberuntime import randomness, timeouts
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.eventrecorder import microtime
from kuberuntime.errors import ConflictError, KubeError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import LEASES

JITTER: Final = 1.2
"""The maximum factor of the retry period, so that candidates do not send simultaneous requests."""

RELEASE_SECONDS: Final = 3.0
"""The timeout in seconds for releasing the lease, because a terminating process has little time."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ElectionSettings(Struct, frozen=True):
    """The lease, the identity of this process, and three durations in seconds."""

    lease: ObjectKey
    identity: str
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    @property
    def tenure(self) -> float:
        """Return the seconds for which a leader may act after sending its last successful renewal.

        As in client-go, renewals may fail for `renew_deadline` after the delay of the first renewal. However, the
        tenure expires before the lease, by at least half of the difference between `lease_duration` and
        `renew_deadline`.

        >>> ElectionSettings(ObjectKey("default", "lock"), "me").tenure
        12.0
        """
        return min(self.renew_deadline + self.retry_period, (self.lease_duration + self.renew_deadline) / 2)

    @property
    def request_limit(self) -> float:
        """Return the seconds after which a request without a response is retried, long before the deadline."""
        return self.renew_deadline / 2


class ObservedLease(Struct, frozen=True):
    """The Lease at the last observed change, and the local monotonic time of that observation."""

    spec: JSONObject
    at: float


class LeaseUpdate(Struct, frozen=True):
    """The decision to write this spec, or to create the Lease if it does not exist."""

    spec: JSONObject
    replaces: JSONObject | None


class Wait(Struct, frozen=True):
    """The decision to wait, because a different process holds the lease."""

    holder: str


Decision: TypeAlias = LeaseUpdate | Wait


class ElectionObserver(Protocol):
    """Observes when leadership starts and stops."""

    def leading(self, *, is_leader: bool) -> None:
        """Record the change."""


def decide(
    settings: ElectionSettings, lease: JSONObject | None, sighting: ObservedLease | None, clock: Clock
) -> Decision:
    """Decide whether to claim the lease at this time."""
    spec = {} if lease is None else meta.spec(lease)
    holder = str(spec.get("holderIdentity") or "")
    if holder and holder != settings.identity and not _is_over(spec, sighting, clock.monotonic()):
        return Wait(holder)
    now = microtime(clock.now())
    is_ours = holder == settings.identity
    transitions = int(spec.get("leaseTransitions") or 0)
    return LeaseUpdate(
        {
            "holderIdentity": settings.identity,
            "leaseDurationSeconds": round(settings.lease_duration),
            "acquireTime": spec.get("acquireTime") or now if is_ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if is_ours or lease is None else transitions + 1,
        },
        replaces=lease,
    )


def observe(sighting: ObservedLease | None, lease: JSONObject, now: float) -> ObservedLease:
    """Return the last observed change. A new observation is returned only if the lease differs from the last one."""
    spec = meta.spec(lease)
    return sighting if sighting is not None and sighting.spec == spec else ObservedLease(spec, now)


def released_spec(lease: JSONObject, now: datetime) -> JSONObject:
    """Return the spec of a released lease, which can be acquired immediately."""
    moment = microtime(now)
    return meta.spec(lease) | {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": moment,
        "renewTime": moment,
    }


def _is_over(spec: JSONObject, sighting: ObservedLease | None, now: float) -> bool:
    if sighting is None or sighting.spec != spec:
        return False
    return now >= sighting.at + float(spec.get("leaseDurationSeconds") or 0)


class LeaderElection:
    """Campaigns for leadership, leads, and restarts the campaign after losing leadership."""

    def __init__(
        self,
        client: Client,
        settings: ElectionSettings,
        clock: Clock,
        observer: ElectionObserver,
        *,
        jitter: Callable[[], float] = randomness.jitter,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._jitter = jitter
        self._seen: ObservedLease | None = None
        self._own_lease: JSONObject | None = None
        self._deadline = float("-inf")
        self._log = log.bind(lease=str(settings.lease), identity=settings.identity)

    @property
    def is_leader(self) -> bool:
        """Return whether this process may currently act as the leader."""
        return self.remaining() > 0

    def remaining(self) -> float:
        """Return the seconds during which this process may act as the leader, or at most 0 if it may not."""
        return self._deadline - self._clock.monotonic()

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `lead` whenever this process is the leader, until `lead` returns. Then release the lease.

        `lead` is cancelled when leadership is lost, and run again when it is acquired again.
        """
        self._observer.leading(is_leader=False)
        while not await self._lead(lead):
            self._log.warning("leadership lost")

    async def _lead(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Acquire the lease and lead once. Return whether `lead` returned without being cancelled."""
        await self._acquire()
        self._log.info("leading")
        self._observer.leading(is_leader=True)
        finished = False
        try:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(lead(), name="lead")
                renewing = group.create_task(self._renew(), name="renew-lease")
                await asyncio.wait((work, renewing), return_when=asyncio.FIRST_COMPLETED)
                finished = work.done()
                work.cancel()
                renewing.cancel()
        finally:
            await self._release()
            self._observer.leading(is_leader=False)
        return finished

    async def _acquire(self) -> None:
        while not await self._try(self._settings.request_limit):  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(self._settings.retry_period * (1 + self._jitter() * (JITTER - 1)))

    async def _renew(self) -> None:
        """Renew the lease until the deadline for failed renewals passes, or a different process holds the lease."""
        pause = self._settings.retry_period
        while self.is_leader:
            await asyncio.sleep(min(pause, max(self.remaining(), 0.0)))
            begun, pause = self._clock.monotonic(), self._settings.retry_period
            try:
                async with timeouts.within(max(self.remaining(), 0.0)):
                    if await self._renew_once():
                        pause = max(pause - (self._clock.monotonic() - begun), 0.0)
            except TimeoutError:
                self._log.warning("failed to renew the lease in time")

    async def _renew_once(self) -> bool:
        """Claim the lease. Retry concurrently while there is no response.

        Return whether an attempt succeeded.
        """
        pending: set[asyncio.Task[bool]] = set()
        is_ours = False
        async with asyncio.TaskGroup() as group:
            while self.is_leader:
                pending.add(group.create_task(self._try(None)))
                done, pending = await asyncio.wait(
                    pending, timeout=self._settings.request_limit, return_when=asyncio.FIRST_COMPLETED
                )
                is_ours = any(attempt.result() for attempt in done)
                if is_ours or not pending:
                    break
                if done:  # rejected immediately: the other attempts may still succeed
                    await asyncio.sleep(self._settings.retry_period)
            for attempt in pending:
                attempt.cancel()
            return is_ours

    async def _try(self, limit: float | None) -> bool:
        """Claim the lease if allowed. Return whether this process now holds it. `limit` is the timeout in seconds."""
        try:
            if self._own_lease is not None and self.is_leader:
                try:
                    return await self._claim(self._own_lease, limit)
                except (ConflictError, NotFoundError):
                    self._log.debug("the lease has changed since the last renewal")
            async with timeouts.within(limit):
                lease = await self._client.find(LEASES, self._settings.lease)
            return await self._claim(lease, limit)
        except (KubeError, TimeoutError) as error:
            is_known = isinstance(error, KubeError) and self._client.has_reported(error)
            report = self._log.debug if is_known else self._log.warning
            report("failed to acquire the lease", error=str(error) or "no response in time")
            return False

    async def _claim(self, lease: JSONObject | None, limit: float | None) -> bool:
        """Claim the lease based on its state, if allowed. Return whether this process now holds it."""
        if lease is not None:
            self._seen = observe(self._seen, lease, self._clock.monotonic())
        decision = decide(self._settings, lease, self._seen, self._clock)
        if isinstance(decision, Wait):
            self._deadline = float("-inf")
            self._log.debug("waiting for the lease to expire", holder=decision.holder)
            return False
        sent_at = self._clock.monotonic()
        async with timeouts.within(limit):
            own_lease = await self._write(decision.spec, decision.replaces)
        if sent_at + self._settings.tenure > self._deadline:  # unless a later attempt has already succeeded
            self._own_lease, self._deadline = own_lease, sent_at + self._settings.tenure
        return True

    async def _release(self) -> None:
        """Release the lease if this process holds it, so that a different process can lead immediately."""
        own_lease, self._own_lease = self._own_lease, None
        may_act, self._deadline = self.is_leader, float("-inf")
        if own_lease is None or not may_act:
            return
        try:
            async with timeouts.within(min(self._settings.retry_period, RELEASE_SECONDS)):
                await self._release_lease(own_lease)
        except (KubeError, TimeoutError) as error:
            self._log.warning("failed to release the lease, waiting for it to expire", error=str(error))
        else:
            self._log.info("lease released")

    async def _release_lease(self, last_lease: JSONObject) -> None:
        """Release the lease in its last held state, or in the state after an interrupted renewal of this process."""
        try:
            await self._write(released_spec(last_lease, self._clock.now()), last_lease)
        except ConflictError:
            lease = await self._client.find(LEASES, self._settings.lease)
            if lease is not None and meta.spec(lease).get("holderIdentity") == self._settings.identity:
                await self._write(released_spec(lease, self._clock.now()), lease)

    async def _write(self, spec: JSONObject, replaces: JSONObject | None) -> JSONObject:
        key = self._settings.lease
        if replaces is not None:
            return await self._client.update(LEASES, replaces | {"spec": spec})
        metadata = {"namespace": key.namespace, "name": key.name}
        lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
        return await self._client.create(LEASES, lease)
