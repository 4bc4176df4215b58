"""The driver of the watch: performs the requests of the state machine in `watch.py`.

In: a client, a selection, a sink. Out: calls of the sink with batches of outputs, in order, without end. Connection
errors and refusals are logged and retried after a back-off. A silent stream is closed when the server should have ended
it (`TIMEOUT` + `GRACE`), so a dead connection is closed by then.
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

TIMEOUT: Final = 290
"""Seconds after which the server should end a stream; part of the request."""

GRACE: Final = 15
"""Seconds after `TIMEOUT` at which the client itself closes a stream or a list."""

STREAMING: Final = (Phase.INITIAL, Phase.WATCHING)
"""The phases in which a stream is read."""

Sink: TypeAlias = Callable[[Sequence[watch.Output]], None]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Watcher:
    """Follows the objects of one selection, which `decoder` decodes.

    With `served`, an optional kind that was not served is requested again only while that event is set.
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
        self._state = watch.State(optional=optional)
        self._scope: asyncio.Timeout | None = None
        self._interrupted = False
        self._was_open = False

    async def run(self, *, gives_up: bool = False) -> None:
        """Follow until cancelled.

        With `gives_up`, raise the ForbiddenError or UnauthorizedError of a user who may not watch. Once a stream was
        open, such a refusal is retried like other errors: a starting API server may refuse requests before it knows its
        roles.
        """
        while True:
            try:
                async with timeouts.within(TIMEOUT + GRACE) as self._scope:
                    await self._round()
            except TimeoutError:
                self._feed(watch.Ended(TIMEOUT))
            except KubeError as error:
                if gives_up and not self._was_open and isinstance(error, ForbiddenError | UnauthorizedError):
                    raise
                self._warn(error)
                self._feed(watch.Refused(error))
            self._scope = None
            self._interrupted = False

    def relist(self) -> None:
        """Read all objects again; responses to requests made before this call are discarded."""
        if self._scope is None or self._interrupted:
            return
        self._feed(watch.Relist())
        self._interrupted = True
        self._scope.reschedule(asyncio.get_running_loop().time())

    async def _round(self) -> None:
        """Perform the request of the phase: one page, or one stream to its end."""
        state = self._state
        await asyncio.sleep(state.wait(randomness.jitter()))
        if state.absent and self._served is not None:
            await self._served.wait()
        if state.phase is Phase.LISTED or (state.phase is Phase.EMPTY and state.streaming):
            await self._stream(state)
        else:
            request = requests.list_page(self._selection, limit=state.limit, token=state.token)
            self._feed(self._decoder.page(await self._client.send(request)))

    async def _stream(self, state: watch.State) -> None:
        initial = state.phase is Phase.EMPTY
        request = requests.watch(self._selection, version=state.version, timeout=TIMEOUT, initial=initial)
        async with self._client.open(request) as response:
            opened = asyncio.get_running_loop().time()
            self._was_open = True
            self._feed(watch.Opened())
            async with aclosing(lines.split(response.chunks)) as batches:
                async for batch in batches:
                    self._feed(*map(self._decoder.event, batch))
                    if self._state.phase not in STREAMING:
                        return
        self._feed(watch.Ended(asyncio.get_running_loop().time() - opened))

    def _feed(self, *inputs: watch.Input) -> None:
        if self._interrupted:
            return
        outputs: list[watch.Output] = []
        for happened in inputs:
            self._state, more = watch.step(self._state, happened)
            outputs += more
        if outputs:
            self._sink(outputs)

    def _warn(self, error: KubeError) -> None:
        fallback = (
            self._state.phase is Phase.EMPTY
            and self._state.streaming
            and isinstance(error, BadRequestError | InvalidError)
        )
        is_expected = isinstance(error, ExpiredError) or (self._state.optional and isinstance(error, NotFoundError))
        report = log.debug if fallback or is_expected or self._client.has_reported(error) else log.warning
        report("watch interrupted", resource=self._selection.resource.group_resource, error=str(error))
