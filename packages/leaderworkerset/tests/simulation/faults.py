"""Provides a transport with faults: delays, rejections, lost responses, closed watches and crashes.

The faults are a value, a `Schedule`: together with its seed it gives the same faults in every run.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace
from tests.simulation.trace import EVENT, LEASE, Trace

from kuberuntime import timeouts
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.errors import ConnectionFailedError

STRIDE: Final = 1 if os.environ.get("SEEDS") else 4
"""In long scenarios, a manager crashes after every fourth write.

If SEEDS is set (`make night`), it crashes after every write.
"""

READS: Final = frozenset({"GET", "HEAD"})


class Fault(Enum):
    """A fault that affects a request."""

    REFUSED = "connection refused"
    """The request does not reach the server."""
    LOST = "answer lost"
    """The server performs the request, but the connection is closed before the response arrives."""
    UNAVAILABLE = "503"
    """The server responds that it is unavailable, and does not perform the request."""
    CONFLICT = "409"
    """The server responds with a conflict, and does not perform the request.

    For writes only, and 500 for deletions: for a deletion by UID this answer would mean that the object is gone.
    """
    BROKEN = "500"
    """The server responds with an internal error, and does not perform the request."""
    THROTTLED = "429"
    """The server requests a retry after one second, and does not perform the request."""
    SILENT = "time-out"
    """The request does not reach the server, and the client receives no response."""
    DONE_SILENTLY = "time-out after the write"
    """The server performs the request, and the client receives no response."""
    LATE = "late"
    """The request reaches the server one second late."""


class Death(Enum):
    """The point of a write at which an actor crashes."""

    BEFORE = "before the write"
    UNANSWERED = "before the answer"
    ANSWERED = "after the answer"


PATIENCE: Final = 5.0
"""The time in seconds after which a client without a response times out."""

LATENESS: Final = 1.0
THROTTLING: Final = 429

STATUSES: Final = {
    Fault.BROKEN: (500, "InternalError", "an error on the server has prevented the request from succeeding"),
    Fault.THROTTLED: (429, "TooManyRequests", "the server has received too many requests"),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    Fault.CONFLICT: (409, "Conflict", "the object has been modified; please apply your changes to the latest version"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The faults of one actor. Writes are numbered from 1. Writes of leader election are not counted."""

    latency: tuple[float, float] = (0.0, 0.0)
    """The minimum and maximum time in seconds of a request and of a watch chunk."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """The faults by write number."""
    rate: float = 0.0
    """The share of all other requests that fail, chosen by the seed."""
    crash_after: int | None = None
    """The number of the write at which the actor crashes."""
    death: Death = Death.UNANSWERED
    """Whether the server performs that write, and whether the actor receives the response.

    By default, the actor does not receive it.
    """
    repeats: float = 0.0
    """The share of watch chunks that are delivered twice."""
    cuts: tuple[float, ...] = ()
    """The times in seconds after the start at which all watches are closed."""


class FaultyTransport:
    """Sends requests to `inner` according to the fault plan, and records the writes.

    `crashed` is set when the actor dies.
    """

    def __init__(self, inner: Transport, actor: str, schedule: Schedule, random: Random, trace: Trace) -> None:
        self.crashed = asyncio.Event()
        self.is_blind = False
        """Whether streams are rejected."""
        self.is_down = False
        """Whether all requests are rejected, as by an unavailable server."""
        self.writes = 0
        self.reads = 0
        """The read requests and watches, except for those of leader election."""
        self.counts: Counter[str] = Counter()
        """The faults that occurred, by name."""
        self.lost: list[tuple[float, str]] = []
        """The time and the target of each write that failed or during which its sender crashed."""
        self.disturbed_at = float("-inf")
        """The time of the last fault."""
        self.interruptions: list[float] = []
        """The times at which the work of the sender was interrupted by a crash, a pause or a lost lease."""
        self._thaw = 0.0
        self._awake = 0.0
        self._isolated = 0.0
        self._expired = False
        self._inner = inner
        self._actor = actor
        self.schedule = schedule
        self._random = random
        self._trace = trace
        self._open: dict[asyncio.Timeout, None] = {}  # an ordered set
        self._generation = 0
        self._timers: list[asyncio.TimerHandle] = []
        self.arm(schedule)

    def arm(self, schedule: Schedule) -> None:
        """Start a schedule. The write counter starts at zero."""
        self.schedule, self.writes = schedule, 0
        later = asyncio.get_running_loop().call_later
        self._timers += [later(after, self.cut_watches) for after in schedule.cuts]

    async def request(self, request: Request) -> Response:
        """Send one request, or raise the scheduled fault."""
        await self._travel()
        if request.method in READS:
            self.reads += LEASE not in request.path
            return await self._read(request)
        try:
            response = await self._write(request)
        except ConnectionFailedError as error:
            self._record(request, str(error))
            raise
        except asyncio.CancelledError:
            self._record(request, "its sender died")
            raise
        self._record(request, response)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Open a stream that can be interrupted."""
        await self._travel()
        self.reads += LEASE not in request.path
        if self.is_blind or self.is_down:
            raise ConnectionFailedError(f"{request.path}: {Fault.REFUSED.value}")
        if self._expired and _continues(request):
            self._expired = False
            gone = status_response(410, "Expired", "too old resource version")
            yield StreamResponse(gone.status, gone.headers, once(gone.body))
            return
        async with self._inner.stream(request) as response:
            yield replace(response, chunks=self._deliver(response.chunks))

    async def close(self) -> None:
        """Cancel the remaining faults."""
        for timer in self._timers:
            timer.cancel()
        await self._inner.close()

    def cut_watches(self) -> None:
        """Interrupt all open streams."""
        self._count("cut")
        self._generation += 1
        for scope in self._open:
            if not scope.expired():  # the request might already be interrupted
                scope.reschedule(asyncio.get_running_loop().time())

    def expire(self) -> None:
        """Interrupt all streams. The next continued watch fails because its resource version has expired."""
        self._count("410")
        self._expired = True
        self.cut_watches()

    def freeze(self, seconds: float) -> None:
        """Deliver no watch events for a number of seconds."""
        self._count("frozen")
        self._thaw = asyncio.get_running_loop().time() + seconds

    def pause(self, seconds: float) -> None:
        """Send and deliver no messages for a number of seconds, as a stopped process does."""
        self._count("paused")
        self.interrupted()
        self._awake = self._thaw = asyncio.get_running_loop().time() + seconds

    def isolate(self, seconds: float) -> None:
        """Reject only the writes of leader election for a number of seconds."""
        self._count("isolated")
        self.interrupted()
        self._isolated = asyncio.get_running_loop().time() + seconds

    def interrupted(self) -> None:
        """Record that the sender does not continue."""
        self.interruptions.append(asyncio.get_running_loop().time())

    def blind(self) -> None:
        """Interrupt all streams, and reject new streams until `see` is called."""
        self.is_blind = True
        self.cut_watches()

    def see(self) -> None:
        """Stop rejecting streams."""
        self.is_blind = False

    async def _read(self, request: Request) -> Response:
        fault = Fault.REFUSED if self.is_down else self._roll((Fault.REFUSED, Fault.UNAVAILABLE))
        return await self._inner.request(request) if fault is None else await self._fail(request, fault)

    async def _write(self, request: Request) -> Response:
        if self.is_down:
            raise ConnectionFailedError(f"{request.path}: {Fault.REFUSED.value}")
        if LEASE in request.path and asyncio.get_running_loop().time() < self._isolated:
            raise ConnectionFailedError(f"{request.path}: {Fault.REFUSED.value}")
        if LEASE in request.path or EVENT in request.path:
            return await self._inner.request(request)
        self.writes += 1
        number = self.writes
        if number == self.schedule.crash_after and self.schedule.death is Death.BEFORE:
            await self._die(request, "not sent")
        fault = self.schedule.faults.get(number) or self._roll(tuple(Fault))
        if fault is Fault.CONFLICT and request.method == "DELETE":
            fault = Fault.BROKEN
        if fault is not None:
            try:
                return await self._fail(request, fault)
            finally:  # only after the server has executed the request
                self._lose(request)
        try:
            response = await self._inner.request(request)
        except asyncio.CancelledError:
            self._lose(request)
            raise
        if number == self.schedule.crash_after:
            if self.schedule.death is Death.ANSWERED:
                self._lose(request)
                self._count(Death.ANSWERED.value)
                self.crashed.set()
                return response
            await self._die(request, str(response.status))
        return response

    async def _die(self, request: Request, answer: str) -> None:
        self._lose(request)
        self._count(self.schedule.death.value)
        self._record(request, f"{answer}, and {self._actor} died")
        self.crashed.set()
        await asyncio.get_running_loop().create_future()

    async def _fail(self, request: Request, fault: Fault) -> Response:
        self._count(fault.value)
        match fault:
            case Fault.SILENT:
                await asyncio.sleep(PATIENCE)
                raise ConnectionFailedError(fault.value)
            case Fault.DONE_SILENTLY:
                response = await self._inner.request(request)
                await asyncio.sleep(PATIENCE)
                raise ConnectionFailedError(f"{fault.value}: {response.status}")
            case Fault.LATE:
                await asyncio.sleep(LATENESS)
                return await self._inner.request(request)
            case Fault.REFUSED:
                raise ConnectionFailedError(fault.value)
            case Fault.LOST:
                response = await self._inner.request(request)
                raise ConnectionFailedError(f"{fault.value}: {response.status}")
            case _:
                return status_response(*STATUSES[fault])

    def _roll(self, faults: tuple[Fault, ...]) -> Fault | None:
        if not self.schedule.rate or self._random.random() >= self.schedule.rate:
            return None
        return self._random.choice(faults)

    async def _travel(self) -> None:
        """Wait for the message delay. A crashed sender does not send a message."""
        if self.crashed.is_set():
            raise ConnectionFailedError(f"{self._actor} is dead")
        paused = self._awake - asyncio.get_running_loop().time()
        if paused > 0:
            await asyncio.sleep(paused)
        least, most = self.schedule.latency
        if most:
            await asyncio.sleep(self._random.uniform(least, most))

    async def _deliver(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        generation = self._generation
        while True:
            chunk = await self._next(chunks)
            if chunk is None:
                return
            await self._travel()
            await self._wait_for_thaw(generation)
            if generation != self._generation:
                raise ConnectionFailedError("the watch was cut")
            yield chunk
            if self.schedule.repeats and self._random.random() < self.schedule.repeats:
                self._count("repeated")
                yield chunk

    async def _wait_for_thaw(self, generation: int) -> None:
        """Wait until the delayed messages are delivered, or the stream is interrupted."""
        left = self._thaw - asyncio.get_running_loop().time()
        if left > 0 and generation == self._generation:
            await asyncio.sleep(left)

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Wait for the next chunk or the interruption."""
        try:
            async with timeouts.within(None) as scope:
                self._open[scope] = None
                try:
                    return await anext(chunks, None)
                finally:
                    del self._open[scope]
        except TimeoutError as error:
            raise ConnectionFailedError("the watch was cut") from error

    def _lose(self, request: Request) -> None:
        self.lost.append((asyncio.get_running_loop().time(), request.path))

    def _count(self, name: str) -> None:
        self.counts[name] += 1
        self.disturbed_at = asyncio.get_running_loop().time()

    def _record(self, request: Request, answer: Response | str) -> None:
        self._trace.record(asyncio.get_running_loop().time(), self._actor, request, answer)


def status_response(code: int, reason: str, message: str) -> Response:
    """Build the response of a server that rejects a request. Status 429 requests a retry after one second."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    body = msgspec.json.encode(status | {"reason": reason, "message": message})
    headers = {"content-type": "application/json"}
    return Response(code, headers | ({"retry-after": "1"} if code == THROTTLING else {}), body)


def _continues(request: Request) -> bool:
    """Return whether a watch continues from a resource version instead of starting with all objects."""
    query = dict(request.query)
    return bool(query.get("resourceVersion")) and "sendInitialEvents" not in query


async def once(body: bytes) -> AsyncIterator[bytes]:
    """Yield a body in one chunk."""
    yield body
