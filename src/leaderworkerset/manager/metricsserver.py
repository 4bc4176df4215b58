"""The HTTPS server for the metrics of this process, for clients that the cluster authorizes."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from kuberuntime.clock import Clock
from kuberuntime.serving import reviews, serving
from kuberuntime.serving.bindaddresses import DISABLED, parse_address
from kuberuntime.serving.certfiles import INTERVAL, CertificateFiles
from kuberuntime.serving.metrics import CONTENT_TYPE, Metrics
from kuberuntime.serving.reviews import Authorizer
from kuberuntime.serving.serving import Listener, TLSSettings
from leaderworkerset.manager.parts import background
from leaderworkerset.webhooks import certificates

PATH: Final = "/metrics"
CERTIFICATES: Final = Path("/tmp/k8s-metrics-server/serving-certs")  # noqa: S108 - the directory manifests mount

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class MetricsServer:
    """Serves metrics at `address` (in the configuration's form), with mounted certificates if they exist."""

    def __init__(self, address: str, metrics: Metrics, authorizer: Authorizer, tls: TLSSettings, clock: Clock) -> None:
        self._address = address
        self._metrics = metrics
        self._authorizer = authorizer
        self._tls = tls
        self._clock = clock

    @property
    def is_ready(self) -> bool:
        """Return True: nothing depends on metrics."""
        return True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the context is entered."""
        if self._address in DISABLED:
            yield
            return
        files = CertificateFiles(CERTIFICATES, self._metrics)
        application = reviews.application(PATH, self._metrics.render, CONTENT_TYPE, self._authorizer)
        address = parse_address(self._address)
        async with (
            certified(files, self._clock, self._tls) as context,
            Listener(application, address, context, name="metrics"),
        ):
            log.info(
                "Serving metrics server", logger="controller-runtime.metrics", bindAddress=str(address), secure=True
            )
            yield

    async def drain(self) -> None:
        """Continue to serve."""


@asynccontextmanager
async def certified(
    files: CertificateFiles, clock: Clock, tls: TLSSettings | None = None
) -> AsyncIterator[ssl.SSLContext]:
    """Yield the TLS context of a server with these certificate files, reloaded on changes.

    Until they exist, it has a self-signed certificate: a secret may be mounted that is written later.
    """
    context = serving.server_context(files.read() if files.exist else self_signed(clock), tls or TLSSettings())
    async with background(_follow(files, context)):
        yield context


async def _follow(files: CertificateFiles, context: ssl.SSLContext) -> None:
    while not files.exist:  # noqa: ASYNC110 - other programs write them
        await asyncio.sleep(INTERVAL)
    await files.follow(lambda chain: _load(context, chain))


def self_signed(clock: Clock) -> bytes:
    """Create a certificate that no client verifies, valid for longer than this process runs; return it with its key."""
    authority = certificates.create_authority(clock.now())
    hosts = ["localhost", socket.gethostname()]
    return certificates.issue(authority, hosts, clock.now(), validity=certificates.AUTHORITY_VALIDITY).chain


async def _load(context: ssl.SSLContext, chain: bytes) -> None:
    serving.load_chain(context, chain)
