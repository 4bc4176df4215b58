"""The HTTPS server of the operator on one port: probes for all clients, metrics for authorized ones (R-OP-11)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from kuberuntime.clock import Clock
from kuberuntime.serving import reviews
from kuberuntime.serving.bindaddresses import parse_address
from kuberuntime.serving.certfiles import CertificateFiles
from kuberuntime.serving.metrics import CONTENT_TYPE, Metrics
from kuberuntime.serving.reviews import Authorizer
from kuberuntime.serving.serving import Listener
from leaderworkerset.manager import metricsserver
from leaderworkerset.manager.parts import AlwaysReady, ProcessPart

CERTIFICATES: Final = Path("/var/run/secrets/serving-cert")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class OperatorServer(AlwaysReady):
    """Serves at `address`; ready as long as `leading` is. Mounted certificates are replaced without a restart."""

    def __init__(
        self, address: str, metrics: Metrics, authorizer: Authorizer, leading: ProcessPart, clock: Clock
    ) -> None:
        self._address = parse_address(address)
        self._metrics = metrics
        self._authorizer = authorizer
        self._leading = leading
        self._clock = clock

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the context is entered."""
        files = CertificateFiles(CERTIFICATES, self._metrics)
        async with (
            metricsserver.certified(files, self._clock) as context,
            Listener(self._application(), self._address, context, name="operator"),
        ):
            log.info("serving probes and metrics", address=str(self._address))
            yield

    def _application(self) -> web.Application:
        application = reviews.application(metricsserver.PATH, self._metrics.render, CONTENT_TYPE, self._authorizer)
        application.add_routes(
            [web.get("/healthz", _alive), web.get("/livez", _alive), web.get("/readyz", self._ready)]
        )
        return application

    async def _ready(self, _request: web.Request) -> web.Response:
        if self._leading.is_ready:
            return web.Response(text="ok")
        return web.Response(status=503, text="not ready: caches are not filled")


async def _alive(_request: web.Request) -> web.Response:
    return web.Response(text="ok")
