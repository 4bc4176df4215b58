"""Serves the liveness and readiness probes of this process."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import structlog

from kuberuntime.serving import serving
from kuberuntime.serving.bindaddresses import DISABLED, parse_address
from kuberuntime.serving.serving import Listener
from leaderworkerset.manager.components import AlwaysReady
from leaderworkerset.manager.config.configuration import Health

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Probes(AlwaysReady):
    """Responds to probes. `checks` contains a message for each readiness condition."""

    def __init__(self, settings: Health, checks: Mapping[str, Callable[[], bool]]) -> None:
        self._settings = settings
        self._checks = checks

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the context is active."""
        settings = self._settings
        if settings.health_probe_bind_address in DISABLED:
            yield
            return
        application = serving.application(
            liveness=settings.liveness_endpoint_name,
            readiness=settings.readiness_endpoint_name,
            checks=self._checks,
        )
        address = parse_address(settings.health_probe_bind_address)
        async with Listener(application, address, name="probes"):
            log.info("starting server", logger="setup", name="health probe", addr=str(address))
            yield
