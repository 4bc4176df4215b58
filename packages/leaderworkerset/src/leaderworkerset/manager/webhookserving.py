"""Serves webhooks as a component, which starts with its first certificate and reloads later certificates."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeAlias

import structlog

from kuberuntime import timeouts
from kuberuntime.errors import ConfigError
from kuberuntime.serving.bindaddresses import Address
from leaderworkerset.manager.components import run_in_background
from leaderworkerset.webhooks.server import WebhookServer

CERTIFICATE_SECONDS: Final = 1023.0
"""The timeout in seconds for the first certificate, which is the sum of ten doubling delays (R-CERT-1)."""

DRAIN_SECONDS: Final = 3.0
"""The time in seconds for which webhooks are served after a stop. Endpoints are not updated immediately."""

Use: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Uses a new certificate and key in one PEM document."""

Certificates: TypeAlias = Callable[[Use], Awaitable[None]]
"""Passes each certificate to `Use`, until cancelled or until there are no more certificates."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Webhooks:
    """Serves webhooks at `address`. `build` creates the server with its first certificate."""

    def __init__(self, address: Address, build: Callable[[bytes], WebhookServer], certificates: Certificates) -> None:
        self._address = address
        self._build = build
        self._certificates = certificates
        self._server: WebhookServer | None = None
        self._opened = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Return whether webhooks are served."""
        return self._server is not None and self._server.is_ready

    async def wait_for_server(self) -> WebhookServer:
        """Wait until the server exists. Raise `ConfigError` if there is no certificate before the timeout."""
        try:
            async with timeouts.within(CERTIFICATE_SECONDS):
                await self._opened.wait()
        except TimeoutError as error:
            raise ConfigError(f"the webhook certificate was not issued within {CERTIFICATE_SECONDS:.0f} s") from error
        assert self._server is not None  # noqa: S101 - set before the event
        return self._server

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the context is active, after the first certificate is available."""
        async with AsyncExitStack() as servers, run_in_background(self._serve(servers)):
            yield

    async def drain(self) -> None:
        """Continue serving until API servers use a different replica."""
        if self._server is not None:
            self._server.drain()
            await asyncio.sleep(DRAIN_SECONDS)

    async def _serve(self, servers: AsyncExitStack) -> None:
        # A queue separates them, because a server error must stop this component, not the certificate source.
        chains: asyncio.Queue[bytes] = asyncio.Queue()
        async with run_in_background(self._wait_for_certificate(chains)):
            while True:
                await self._use_certificate(await chains.get(), servers)

    async def _wait_for_certificate(self, chains: "asyncio.Queue[bytes]") -> None:
        await self._certificates(chains.put)

    async def _use_certificate(self, chain: bytes, servers: AsyncExitStack) -> None:
        """Serve webhooks with this certificate."""
        if self._server is not None:
            await self._server.replace_certificate(chain)
            return
        host, port = self._address.host, self._address.port
        try:
            self._server = await servers.enter_async_context(self._build(chain))
        except OSError as error:
            raise ConfigError(f"cannot serve webhooks on {host}:{port}: {error.strerror}") from error
        self._opened.set()
        log.info("Serving webhook server", logger="controller-runtime.webhook", host=host, port=port)
