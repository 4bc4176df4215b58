"""Serves metrics over HTTPS to clients that are authorized by the cluster."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Gauge

from kuberuntime.serving import delegatedauth, serving
from kuberuntime.serving.bindaddresses import DISABLED, parse_address
from kuberuntime.serving.certfiles import INTERVAL, CertificateFiles
from kuberuntime.serving.delegatedauth import Authorizer
from kuberuntime.serving.metrics import CONTENT_TYPE, Metrics
from kuberuntime.serving.serving import Listener, TLSSettings
from leaderworkerset.manager.components import AlwaysReady, run_in_background
from leaderworkerset.webhooks.certificatesubprocess import CertificateSubprocess

PATH: Final = "/metrics"
CERTIFICATES: Final = Path("/tmp/k8s-metrics-server/serving-certs")  # noqa: S108 - the directory manifests mount

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class MetricsServer(AlwaysReady):
    """Serves metrics at `address` (in configuration format), with mounted certificates if they exist."""

    def __init__(
        self, address: str, metrics: Metrics, authorizer: Authorizer, tls: TLSSettings, work: CertificateSubprocess
    ) -> None:
        self._address = address
        self._metrics = metrics
        self._authorizer = authorizer
        self._tls = tls
        self._work = work

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the context is active."""
        if self._address in DISABLED:
            yield
            return
        files = CertificateFiles(CERTIFICATES, self._metrics)
        application = delegatedauth.application(PATH, self._metrics.render, CONTENT_TYPE, self._authorizer)
        address = parse_address(self._address)
        async with (
            serving_tls_context(files, self._work, self._tls) as context,
            Listener(application, address, context, name="metrics"),
        ):
            log.info(
                "Serving metrics server", logger="controller-runtime.metrics", bindAddress=str(address), secure=True
            )
            yield


@asynccontextmanager
async def serving_tls_context(
    files: CertificateFiles, work: CertificateSubprocess, tls: TLSSettings | None = None
) -> AsyncIterator[ssl.SSLContext]:
    """Yield a TLS context for a server with these certificate files, which are reloaded on changes.

    Until the files exist, it has a self-signed certificate, because a mounted Secret may be created later.
    """
    context = serving.server_context(files.read() if files.exist else await work.self_signed(), tls)
    async with run_in_background(_reload_on_change(files, context)):
        yield context


async def _reload_on_change(files: CertificateFiles, context: ssl.SSLContext) -> None:
    while not files.exist:  # noqa: ASYNC110 - other programs write them
        await asyncio.sleep(INTERVAL)
    await files.follow(lambda chain: _load(context, chain))


async def _load(context: ssl.SSLContext, chain: bytes) -> None:
    serving.replace_chain(context, chain)


NAME: Final = "lws_certificate_expiry_timestamp_seconds"


class CertificateExpirations:
    """Exports the expiration time of the certificate of each server in this process, in seconds since 1970."""

    def __init__(self, metrics: Metrics, work: CertificateSubprocess) -> None:
        self._work = work
        registry = CollectorRegistry()
        self._ends = Gauge(NAME, "Expiration time of the server certificate.", ("server",), registry=registry)
        metrics.register(self._ends)

    async def record_certificate(self, server: str, chain: bytes) -> None:
        """Record the current PEM certificate of a server. Its expiration time is NaN if only OpenSSL can parse it."""
        end = await self._work.find_expiration(chain)
        if end is None:  # OpenSSL accepts more formats, and a metric must not stop a server
            log.warning("the expiration time of the certificate is unknown", server=server)
        self.record(server, end)

    def record(self, server: str, end: datetime | None) -> None:
        """Record the expiration time of a server's current certificate."""
        self._ends.labels(server).set(math.nan if end is None else end.timestamp())
