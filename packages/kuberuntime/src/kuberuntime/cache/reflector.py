"""Drives a watch by sending the requests of the state machine in `watch.py`.

Input: a client, a selection, a sink. Output: calls of the sink with batches of outputs, in order, until cancelled.
Connection errors and rejected requests are logged and retried after a back-off.

A proxy may keep a connection open after its server has terminated, so a stream is closed after `SILENCE` seconds
without an event or bookmark. API servers send bookmarks once a minute, except for events, which they serve without a
cache.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeAlias

import structlog

from kuberuntime import randomness, timeouts
from kuberuntime.cache import watch
from kuberuntime.cache.decoding import Decoder
from kuberuntime.cache.watch import Phase
from kuberuntime.client import lines, requests
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.errors import (
    BadRequestError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotFoundError,
    UnauthorizedError,
)
from kuberuntime.objects.resources import CORE_EVENTS, EVENTS

TIMEOUT: Final = 290
"""The `timeoutSeconds` of a watch request, after which the server closes the stream."""

GRACE: Final = 15
"""The seconds after `TIMEOUT` at which the client closes a stream or a list."""

SILENCE: Final = 75.0
"""The seconds without an event or bookmark after which a stream is silent. Bookmarks arrive every 60 to 63 s."""

PRECISION: Final = 1.0
"""The minimum change of a time limit in seconds, because an event must not set a timer."""

WITHOUT_BOOKMARKS: Final = frozenset({CORE_EVENTS, EVENTS})
"""The kinds for which kube-apiserver does not send regular bookmarks."""

STREAMING: Final = (Phase.INITIAL, Phase.WATCHING)
"""The phases in which a stream is read."""

Sink: TypeAlias = Callable[[Sequence[watch.Output]], None]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Reflector:
    """Watches the selected objects, which `decoder` decodes.

    If `served` is set, an optional kind that was not served is requested again only while that event is set.
    """

    def __init__(
        self,
        client: Client,
        selection: Selection,
        sink: Sink,
        decoder: Decoder,
        *,
        optional: bool = False,
        served: asyncio.Event | None = None,
    ) -> None:
        self._client = client
        self._selection = selection
        self._sink = sink
        self._decoder = decoder
        self._served = served
        self._name = selection.resource.group_resource
        self._state = watch.State(is_optional=optional)
        self._scope: asyncio.Timeout | None = None
        self._end = 0.0
        self._interrupted = False
        self._was_open = False
        self.last_received: float | None = None
        """The event loop time when the API server last opened a stream, or sent a page, an event or a bookmark."""

    @property
    def state(self) -> watch.State:
        """Return the current state."""
        return self._state

    async def run(self, *, gives_up: bool = False) -> None:
        """Watch until the task is cancelled.

        If `gives_up` is set, raise the ForbiddenError or UnauthorizedError of a user who may not watch. After the first
        stream was opened, such errors are retried like other errors, because a starting API server may deny requests
        before it has loaded its roles.
        """
        while True:
            try:
                async with timeouts.within(TIMEOUT + GRACE) as self._scope:
                    self._end = _now() + TIMEOUT + GRACE
                    await self._perform_phase()
            except TimeoutError:
                self._timed_out()
            except KubeError as error:
                if gives_up and not self._was_open and isinstance(error, ForbiddenError | UnauthorizedError):
                    raise
                self._log_warning(error)
                self._advance(watch.RequestFailed(error))
            self._scope = None
            self._interrupted = False

    def relist(self) -> None:
        """Request a new list of all objects, and discard responses to earlier requests."""
        if self._scope is None or self._interrupted:
            return
        self._advance(watch.Relist())
        self._interrupted = True
        self._end_at(_now())

    async def _perform_phase(self) -> None:
        """Perform the request of the phase, which reads one page, or reads one stream until it is closed."""
        state = self._state
        await asyncio.sleep(state.wait(randomness.jitter()))
        if state.is_absent and self._served is not None:
            await self._served.wait()
        if state.phase is Phase.LISTED or (state.phase is Phase.EMPTY and state.is_streaming):
            await self._stream(state)
        else:
            request = requests.list_page(self._selection, limit=state.limit, token=state.token)
            self._advance(self._decoder.page(await self._client.send(request)))
            self.last_received = _now()

    async def _stream(self, state: watch.State) -> None:
        initial = state.phase is Phase.EMPTY
        request = requests.watch(self._selection, version=state.version, timeout=TIMEOUT, initial=initial)
        async with self._client.open(request) as response:
            opened = self._record_data()
            self._was_open = True
            self._advance(watch.StreamOpened())
            async with aclosing(lines.split(response.chunks)) as batches:
                async for batch in batches:
                    self._record_data()
                    self._advance(*map(self._decoder.event, batch))
                    if self._state.phase not in STREAMING:
                        return
        lasted = self._record_data() - opened
        self._advance(watch.StreamEnded(lasted))
        if self._state.phase is Phase.EMPTY and self._state.empty_streams:
            report = log.warning if self._state.empty_streams == watch.EMPTY_STREAMS else log.debug
            report(
                "watch closed repeatedly without events, listing the objects",
                resource=self._name,
                times=self._state.empty_streams,
            )

    def _record_data(self) -> float:
        """Record that the API server sent data, extend the time limit by `SILENCE`, and return the time."""
        now = self.last_received = _now()
        end = min(now + SILENCE, self._end)
        if not self._interrupted and self._scope is not None and abs(end - (self._scope.when() or 0.0)) > PRECISION:
            self._end_at(end)
        return now

    def _end_at(self, time: float) -> None:
        """Change the time limit of the round, unless the limit has already expired."""
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(time)

    def _timed_out(self) -> None:
        """Handle a stream without data for `SILENCE` seconds, or the timeout of the whole round."""
        before = self._state
        is_silent = before.phase in STREAMING and _now() < self._end
        if not is_silent or self._selection.resource in WITHOUT_BOOKMARKS:
            self._advance(watch.StreamEnded(TIMEOUT))
            return
        self._advance(watch.StreamSilent())
        report = log.warning if self._state.is_stalled and not before.is_stalled else log.debug
        report("watch did not send events in time, reconnecting", resource=self._name, seconds=SILENCE)

    def _advance(self, *inputs: watch.Input) -> None:
        if self._interrupted:
            return
        outputs: list[watch.Output] = []
        for happened in inputs:
            self._state, more = watch.step(self._state, happened)
            outputs += more
        if outputs:
            self._sink(outputs)

    def _log_warning(self, error: KubeError) -> None:
        fallback = (
            self._state.phase is Phase.EMPTY
            and self._state.is_streaming
            and isinstance(error, BadRequestError | InvalidError)
        )
        is_expected = isinstance(error, ExpiredError) or (self._state.is_optional and isinstance(error, NotFoundError))
        report = log.debug if fallback or is_expected or self._client.has_reported(error) else log.warning
        report("watch interrupted", resource=self._name, error=str(error))


def _now() -> float:
    return asyncio.get_running_loop().time()
