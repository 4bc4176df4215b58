"""A transport with faults: delays, refusals, lost answers, dropped watches, and the death of its user after a write.

What happens is a value, a `Schedule`: together with its seed it gives the same faults in every run.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random
from typing import Final

import msgspec
from tests.simulation.trace import LEASE, Trace

from kuberuntime import timeouts
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.errors import ConnectionFailedError

READS: Final = frozenset({"GET", "HEAD"})


class Fault(Enum):
    """What can happen to a request."""

    REFUSED = "connection refused"
    """It does not reach the server."""
    LOST = "answer lost"
    """The server performs it, and the connection breaks before the answer is there."""
    UNAVAILABLE = "503"
    """The server answers that it is unavailable, and does nothing."""
    CONFLICT = "409"
    """The server answers that the object has changed, and does nothing. For writes only."""


STATUSES: Final = {
    Fault.UNAVAILABLE: (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    Fault.CONFLICT: (409, "Conflict", "the object has been modified; please apply your changes to the latest version"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The faults of one actor. Writes are numbered from 1 on; those of leader election are not counted."""

    latency: tuple[float, float] = (0.0, 0.0)
    """Seconds that a request, and a piece of a watch, takes at least and at most."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """Faults by the number of the write."""
    rate: float = 0.0
    """Part of all requests that fail beyond those, chosen by the seed."""
    crash_after: int | None = None
    """The number of the write after which the actor dies: the server performs it, and the actor never learns of it."""
    cuts: tuple[float, ...] = ()
    """Seconds after the start at which all watches are cut."""


class FaultyTransport:
    """Carries requests to `inner` as the schedule wants it, and records the writes. `crashed` is set at the death."""

    def __init__(self, inner: Transport, actor: str, schedule: Schedule, random: Random, trace: Trace) -> None:
        self.crashed = asyncio.Event()
        self.is_blind = False
        self.writes = 0
        self._inner = inner
        self._actor = actor
        self._schedule = schedule
        self._random = random
        self._trace = trace
        self._open: dict[asyncio.Timeout, None] = {}  # a set that keeps its order
        self._generation = 0
        self._timers = [asyncio.get_running_loop().call_later(after, self.cut_watches) for after in schedule.cuts]

    async def request(self, request: Request) -> Response:
        """Send one request, or let it fail."""
        await self._travel()
        if request.method in READS:
            return await self._read(request)
        try:
            response = await self._write(request)
        except ConnectionFailedError as error:
            self._record(request, str(error))
            raise
        self._record(request, response)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Open a stream that can be cut."""
        await self._travel()
        if self.is_blind:
            raise ConnectionFailedError(f"{request.path}: {Fault.REFUSED.value}")
        async with self._inner.stream(request) as response:
            yield replace(response, chunks=self._deliver(response.chunks))

    async def close(self) -> None:
        """Cancel the faults to come."""
        for timer in self._timers:
            timer.cancel()
        await self._inner.close()

    def cut_watches(self) -> None:
        """Break all streams that are open."""
        self._generation += 1
        for scope in self._open:
            scope.reschedule(asyncio.get_running_loop().time())

    def blind(self) -> None:
        """Break all streams, and refuse new ones until `see`."""
        self.is_blind = True
        self.cut_watches()

    def see(self) -> None:
        """Allow streams again."""
        self.is_blind = False

    async def _read(self, request: Request) -> Response:
        fault = self._roll((Fault.REFUSED, Fault.UNAVAILABLE))
        return await self._inner.request(request) if fault is None else await self._fail(request, fault)

    async def _write(self, request: Request) -> Response:
        if LEASE in request.path:
            return await self._inner.request(request)
        self.writes += 1
        number = self.writes
        fault = self._schedule.faults.get(number) or self._roll(tuple(Fault))
        if fault is not None:
            return await self._fail(request, fault)
        response = await self._inner.request(request)
        if number == self._schedule.crash_after:
            self._record(request, f"{response.status}, and {self._actor} died")
            self.crashed.set()
            await asyncio.get_running_loop().create_future()
        return response

    async def _fail(self, request: Request, fault: Fault) -> Response:
        match fault:
            case Fault.REFUSED:
                raise ConnectionFailedError(fault.value)
            case Fault.LOST:
                response = await self._inner.request(request)
                raise ConnectionFailedError(f"{fault.value}: {response.status}")
            case _:
                code, reason, message = STATUSES[fault]
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
                body = msgspec.json.encode(status | {"reason": reason, "message": message})
                return Response(code, {"content-type": "application/json"}, body)

    def _roll(self, faults: tuple[Fault, ...]) -> Fault | None:
        if not self._schedule.rate or self._random.random() >= self._schedule.rate:
            return None
        return self._random.choice(faults)

    async def _travel(self) -> None:
        """Take the time that a message takes; the dead send none."""
        if self.crashed.is_set():
            raise ConnectionFailedError(f"{self._actor} is dead")
        least, most = self._schedule.latency
        if most:
            await asyncio.sleep(self._random.uniform(least, most))

    async def _deliver(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        generation = self._generation
        while True:
            chunk = await self._next(chunks)
            if chunk is None:
                return
            await self._travel()
            if generation != self._generation:
                raise ConnectionFailedError("the watch was cut")
            yield chunk

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Wait for the next piece, or for the cut."""
        try:
            async with timeouts.within(None) as scope:
                self._open[scope] = None
                try:
                    return await anext(chunks, None)
                finally:
                    del self._open[scope]
        except TimeoutError as error:
            raise ConnectionFailedError("the watch was cut") from error

    def _record(self, request: Request, answer: Response | str) -> None:
        self._trace.record(asyncio.get_running_loop().time(), self._actor, request, answer)
