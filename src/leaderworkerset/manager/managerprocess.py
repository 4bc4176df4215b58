"""The manager as a process: what `lws manager` puts together, starts and ends.

```
every replica                                          only the leader, under the lease
  probes          :8081  kuberuntime/serving/health.py                  controllers   controllers/manager.py
  metrics         :8443  kuberuntime/serving/reviews.py, metrics.py        their client: limited (qps, burst), fenced (the lease)
  webhooks        :9443  webhooks/server.py
  certificates           webhooks/rotationloop.py, or kuberuntime/serving/certfiles.py
  leader election        kuberuntime/serving/leaderelection.py
```

A replica campaigns only when its own webhooks serve (R-MGR-4). When asked to stop, it begins no reconciliation, ends
those under way, frees the lease, and answers webhooks a little longer, until API servers have heard that it goes.
"""

import asyncio
import os
import socket
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog

from kuberuntime import randomness, timeouts
from kuberuntime.access import kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.client.client import Client
from kuberuntime.client.fence import Fence, FencedTransport
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.limit import LimitedTransport, TokenBucket
from kuberuntime.client.transport import Transport
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import ConfigError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.serving import health, reviews, serving
from kuberuntime.serving.certfiles import CertificateFiles
from kuberuntime.serving.leaderelection import ElectionSettings, LeaderElection
from kuberuntime.serving.metrics import CONTENT_TYPE, Metrics, ObservedTransport
from kuberuntime.serving.serving import Listener, TLSSettings
from kuberuntime.serving.signals import until_stopped
from leaderworkerset.controllers.manager import run_controllers
from leaderworkerset.controllers.metrics import ControllerInstruments
from leaderworkerset.manager import buildinfo, ciphersuites
from leaderworkerset.manager import configuration as config
from leaderworkerset.manager.configuration import Configuration
from leaderworkerset.webhooks import certificates, rotationloop
from leaderworkerset.webhooks.handlers import HANDLERS
from leaderworkerset.webhooks.rotationloop import Rotation
from leaderworkerset.webhooks.server import WebhookServer

METRICS_PATH: Final = "/metrics"
METRICS_CERTIFICATES: Final = Path("/tmp/k8s-metrics-server/serving-certs")  # noqa: S108 - the directory manifests mount

CERTIFICATE_SECONDS: Final = 1023.0
"""How long certificates may take to be ready: the ten waits of R-CERT-1, from one second, doubling."""

DRAIN_SECONDS: Final = 3.0
"""How long webhooks are answered after the request to stop: so long endpoints of a service may take to change."""

FINISH_SECONDS: Final = 6.0
"""How long ending the controllers and freeing the lease may take."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line, the environment and the file come down to."""

    configuration: Configuration
    kubeconfig: str = ""
    namespace: str = "lws-system"
    webhooks: bool = True


async def run_until_stopped(settings: Settings) -> None:
    """Run the manager until this process is asked to stop."""
    async with until_stopped() as stopped:
        await ManagerProcess(settings, SystemClock()).run(stopped)


class ManagerProcess:
    """One replica of the manager."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._configuration = settings.configuration
        self._clock = clock
        self._metrics = Metrics()
        self._instruments = ControllerInstruments(self._metrics)
        self._tls = tls_settings(self._configuration.tls)
        self._access = kubeconfig.load(os.environ, kubeconfig=settings.kubeconfig)
        # Leases, certificates and reviews have connections of their own: they never wait behind the controllers.
        self._own = self._transport(self._access)
        self._client = Client(self._own)
        self._election = LeaderElection(
            self._client,
            election_settings(self._configuration, settings.namespace),
            clock,
            self._metrics.leadership(self._configuration.leader_election.resource_name),
        )
        self._is_elected = self._configuration.leader_election.leader_elect
        self._shared = self._transport(self._access, self._election if self._is_elected else None)
        self._servers = AsyncExitStack()
        self._webhooks: WebhookServer | None = None
        self._webhooks_ready = asyncio.Event()
        self._synced = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self, stopped: asyncio.Event) -> None:
        """Run until `stopped` is set."""
        try:
            async with self._servers:
                await self._serve_probes()
                async with asyncio.TaskGroup() as tasks:
                    background = [tasks.create_task(each) for each in (self._serve_metrics(), self._serve_webhooks())]
                    leading = tasks.create_task(self._work(), name="work")
                    await stopped.wait()
                    await self._stop(leading)
                    for task in background:
                        task.cancel()
        finally:
            await self._own.close()
            await self._shared.close()
        log.info("stopped", logger="setup")

    async def _stop(self, leading: "asyncio.Task[None]") -> None:
        log.info("stopping", logger="setup")
        drained = asyncio.get_running_loop().time() + (DRAIN_SECONDS if self._webhooks else 0.0)
        self._stopping.set()
        if self._webhooks is not None:
            self._webhooks.drain()
        if self._synced.is_set():
            await asyncio.wait((leading,), timeout=FINISH_SECONDS)
        leading.cancel()
        await asyncio.wait((leading,))
        await asyncio.sleep(max(drained - asyncio.get_running_loop().time(), 0.0))

    async def _work(self) -> None:
        """Run the controllers, as the leader where one is elected."""
        await self._await_webhooks()
        if self._is_elected:
            await self._election.run(self._control)
        else:
            await self._control()

    async def _await_webhooks(self) -> None:
        try:
            async with timeouts.within(CERTIFICATE_SECONDS):
                await self._webhooks_ready.wait()
        except TimeoutError as error:
            raise ConfigError(f"no certificate for the webhooks within {CERTIFICATE_SECONDS:.0f} s") from error

    async def _control(self) -> None:
        # The fence comes last: whatever waited for the limiter is checked again before it is sent.
        fenced = FencedTransport(self._shared, self._election) if self._is_elected else self._shared
        try:
            await run_controllers(
                Client(self._limited(fenced)),
                clock=self._clock,
                instance=f"leaderworkerset-{socket.gethostname()}",
                synced=self._synced,
                stopping=self._stopping,
                instruments=self._instruments,
            )
        finally:
            self._synced.clear()

    def _limited(self, transport: Transport) -> Transport:
        connection = self._configuration.client_connection
        if connection.qps < 0:
            return transport
        return LimitedTransport(transport, TokenBucket(connection.qps, connection.burst), self._clock)

    def _transport(self, access: Access, fence: Fence | None = None) -> Transport:
        transport = HTTPTransport(access, user_agent=buildinfo.user_agent(), fence=fence)
        return ObservedTransport(transport, urlsplit(access.server).netloc, self._metrics)

    async def _serve_probes(self) -> None:
        probes = self._configuration.health
        if probes.health_probe_bind_address in serving.DISABLED:
            return
        application = health.application(
            liveness=probes.liveness_endpoint_name,
            readiness=probes.readiness_endpoint_name,
            checks={
                "webhooks do not serve": lambda: self._serves_webhooks,
                "caches are not filled": lambda: self._synced.is_set() or not self._leads,
            },
        )
        address = serving.parse_address(probes.health_probe_bind_address)
        await self._servers.enter_async_context(Listener(application, address, name="probes"))
        log.info("starting server", logger="setup", name="health probe", addr=str(address))

    @property
    def _leads(self) -> bool:
        """Return whether the controllers run here."""
        return self._election.is_leader or not self._is_elected

    @property
    def _serves_webhooks(self) -> bool:
        """Return whether webhooks are answered, or are nobody's business here."""
        return not self._settings.webhooks or (self._webhooks is not None and self._webhooks.is_ready)

    async def _serve_metrics(self) -> None:
        text = self._configuration.metrics.bind_address
        if text in serving.DISABLED:
            return
        for path in HANDLERS if self._settings.webhooks else ():
            self._metrics.prepare_webhook(path)
        files = CertificateFiles(METRICS_CERTIFICATES, self._metrics)
        context = serving.server_context(files.read() if files.exist else self._self_signed(), self._tls)
        application = reviews.application(
            METRICS_PATH, self._metrics.render, CONTENT_TYPE, reviews.Authorizer(self._client, self._clock)
        )
        address = serving.parse_address(text)
        await self._servers.enter_async_context(Listener(application, address, context, name="metrics"))
        log.info("Serving metrics server", logger="controller-runtime.metrics", bindAddress=str(address), secure=True)
        if files.exist:
            await files.follow(lambda chain: _load(context, chain))

    async def _serve_webhooks(self) -> None:
        """Serve webhooks with every certificate that comes: the first opens the port."""
        if not self._settings.webhooks:
            self._webhooks_ready.set()
            return
        chains: asyncio.Queue[bytes] = asyncio.Queue()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._find_certificates(chains), name="certificates")
            while True:
                await self._show(await chains.get())

    async def _find_certificates(self, chains: "asyncio.Queue[bytes]") -> None:
        internal = self._configuration.internal_cert_management
        if not internal.enable:
            await CertificateFiles(Path(self._configuration.webhook.cert_dir), self._metrics).follow(chains.put)
            return
        service, secret = internal.webhook_service_name, internal.webhook_secret_name
        place = rotationloop.place(self._settings.namespace, service, secret)
        await Rotation(self._client, place, self._clock, chains.put).run()

    async def _show(self, chain: bytes) -> None:
        """Serve webhooks with this certificate from now on."""
        if self._webhooks is not None:
            await self._webhooks.replace_certificate(chain)
            return
        webhook = self._configuration.webhook
        server = WebhookServer(webhook.host, webhook.port, chain, tls=self._tls, observe=self._metrics.webhook_answered)
        try:
            self._webhooks = await self._servers.enter_async_context(server)
        except OSError as error:
            raise ConfigError(f"cannot serve webhooks on {webhook.host}:{webhook.port}: {error.strerror}") from error
        self._webhooks_ready.set()
        log.info("Serving webhook server", logger="controller-runtime.webhook", host=webhook.host, port=webhook.port)

    def _self_signed(self) -> bytes:
        """Make a certificate for metrics that nobody verifies, good for longer than this process lives."""
        authority = certificates.create_authority(self._clock.now())
        validity = certificates.AUTHORITY_VALIDITY
        hosts = ["localhost", socket.gethostname()]
        return certificates.issue(authority, hosts, self._clock.now(), validity=validity).chain


async def _load(context: ssl.SSLContext, chain: bytes) -> None:
    serving.load_chain(context, chain)


def election_settings(configuration: Configuration, namespace: str) -> ElectionSettings:
    """Return how this replica campaigns, under a name that no other has."""
    election = configuration.leader_election
    return ElectionSettings(
        lease=ObjectKey(namespace, election.resource_name),
        identity=f"{socket.gethostname()}_{randomness.uid()}",
        lease_duration=election.lease_duration,
        renew_deadline=election.renew_deadline,
        retry_period=election.retry_period,
    )


def tls_settings(tls: config.TLS) -> TLSSettings:
    """Return what the servers speak (R-CFG-2)."""
    version = ssl.TLSVersion.TLSv1_3 if tls.min_version == config.TLS13 else ssl.TLSVersion.TLSv1_2
    return TLSSettings(version, ciphersuites.openssl_names(tls.cipher_suites))
