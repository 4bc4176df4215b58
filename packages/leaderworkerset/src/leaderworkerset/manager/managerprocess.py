"""Runs the components of `lws manager` as a process.

```
every replica                                      only the leader, under the lease
  probes          :8081  manager/probes.py           controllers   manager/leadership.py, manager/controllers.py
  metrics         :8443  manager/metricsserver.py      their client: limited (qps, burst), fenced (the lease)
  webhooks        :9443  manager/webhookserving.py
  certificates           webhooks/rotationloop.py, or kuberuntime/serving/certfiles.py
  leader election        kuberuntime/serving/leaderelection.py
  gang schedulers        manager/gangdetection.py, where admission depends on what is served
```

A replica takes part in leader election only while it serves webhooks (R-MGR-4). With some gang schedulers, it serves
webhooks only after these are detected. When it is stopped, it does not start reconciles, finishes those in progress,
releases the lease, and serves webhooks until API servers use a different replica.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from msgspec import Struct
from prometheus_client import ProcessCollector

from kuberuntime import randomness, tlsbuffers
from kuberuntime.access import kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.client.client import Client
from kuberuntime.client.fence import Fence, FencedTransport
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.outage import Outage
from kuberuntime.client.ratelimit import LimitedTransport, TokenBucket
from kuberuntime.client.transport import Transport
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.certfiles import CertificateFiles
from kuberuntime.serving.delegatedauth import Authorizer
from kuberuntime.serving.leaderelection import ElectionSettings, LeaderElection
from kuberuntime.serving.metrics import Metrics, ObservedTransport
from kuberuntime.serving.serving import TLSSettings
from kuberuntime.serving.signals import stop_event
from leaderworkerset.kinds.managedkinds import managed_kinds, no_providers
from leaderworkerset.manager import buildinfo, components, kubernetesversions
from leaderworkerset.manager.components import ProcessPart
from leaderworkerset.manager.config import ciphersuites
from leaderworkerset.manager.config import configuration as config
from leaderworkerset.manager.config.configuration import Configuration
from leaderworkerset.manager.config.configurationfile import opted_in
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.diagnostics import handle_signals
from leaderworkerset.manager.gangdetection import DETECTING, GangDetection
from leaderworkerset.manager.leadership import LeaderRunner
from leaderworkerset.manager.metricsserver import CertificateExpirations, MetricsServer
from leaderworkerset.manager.policyremoval import PolicyRemoval
from leaderworkerset.manager.probes import Probes
from leaderworkerset.manager.webhookowner import WebhookOwner
from leaderworkerset.manager.webhookserving import Use, Webhooks
from leaderworkerset.webhooks import rotationloop
from leaderworkerset.webhooks.certificatesubprocess import CertificateSubprocess
from leaderworkerset.webhooks.rotationloop import Rotation
from leaderworkerset.webhooks.server import WebhookOptions, WebhookServer

API_REQUESTS: Final = "lws_api_requests_total"
"""The metric for the number of requests by verb and resource."""

GANGS: Final = "gang schedulers are not detected yet"
WEBHOOKS: Final = "webhooks are not served yet"
CACHES: Final = "caches have not synced yet"
SILENT: Final = "watches do not receive changes from the API server"
ELSEWHERE: Final = "the webhook configurations refer to the manager in a different namespace"
"""The readiness probe messages for components that are not ready."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ManagerSettings(Struct, frozen=True):
    """The combined settings from command line, environment and file."""

    configuration: Configuration
    kubeconfig: str = ""
    namespace: str = "lws-system"
    is_pod: bool = False
    """Whether this process runs in a pod in `namespace`, to which the cluster's webhooks must refer."""
    serves_webhooks: bool = True


async def run_until_stopped(settings: ManagerSettings, toggle_debug: Callable[[], None]) -> None:
    """Run the manager until this process is stopped. Signals trigger diagnostics (`diagnostics.py`)."""
    tlsbuffers.reduce_buffer_size()
    async with stop_event() as stopped:
        with handle_signals(toggle_debug):
            await ManagerProcess(settings, SystemClock()).run(stopped)


class ManagerProcess:
    """A manager replica."""

    def __init__(self, settings: ManagerSettings, clock: Clock) -> None:
        self._settings = settings
        self._configuration = settings.configuration
        self._clock = clock
        self._metrics = Metrics(api_requests=API_REQUESTS)
        self._certificate_work = CertificateSubprocess(clock)
        self._certificate_ends = CertificateExpirations(self._metrics, self._certificate_work)
        self._metrics.register(ProcessCollector(registry=None))
        self._metrics.register(buildinfo.metric())
        self._tls = tls_settings(self._configuration.tls)
        access = kubeconfig.load(os.environ, kubeconfig=settings.kubeconfig)
        # Leases, certificates and reviews use separate connections, so that controller requests do not delay them.
        self._own = self._transport(access)
        self._outage = Outage(log)
        self._client = Client(self._own, outage=self._outage)
        provider = self._configuration.gang_provider
        self._detection = GangDetection(self._client) if provider in DETECTING else None
        served = self._detection.wait_for_providers if self._detection is not None else no_providers
        workload_aware = self._configuration.feature_gates.workload_aware_scheduling
        self._kinds = managed_kinds(
            provider,
            served,
            workload_aware=workload_aware,
            configured=opted_in(self._configuration),
        )
        self._instruments = self._kinds.instruments(self._metrics)
        self._election = self._leader_election() if self._configuration.leader_election.leader_elect else None
        self._shared = self._transport(access, self._election)
        self._recording = self._transport(access, self._election) if self._configuration.recorder.enable else None

    async def run(self, stopped: asyncio.Event) -> None:
        """Run until `stopped` is set."""
        try:
            await components.run(self._components(), stopped)
        finally:
            await self._own.close()
            await self._shared.close()
            if self._recording is not None:
                await self._recording.close()
        log.info("stopped", logger="setup")

    def _components(self) -> list[ProcessPart]:
        """Return the components in start order."""
        webhooks = self._webhooks() if self._settings.serves_webhooks else None

        async def begin() -> None:
            if webhooks is not None:
                await webhooks.wait_for_server()
            await kubernetesversions.check(self._client)
            if self._configuration.requires_pod_policies:
                await kubernetesversions.require_pod_policies(self._client)

        follows = webhooks is not None and self._settings.is_pod
        owner = WebhookOwner(self._client, self._settings.namespace) if follows else None
        leading = LeaderRunner(self._controllers, election=self._election, begin=begin, owner=owner)
        detection = self._detection if webhooks is not None else None
        waiting = {GANGS: detection, WEBHOOKS: webhooks, CACHES: leading}
        served = {missing: part for missing, part in waiting.items() if part is not None}
        checks = {missing: partial(_is_ready, part) for missing, part in served.items()}
        checks[SILENT] = partial(leading.receives_changes)
        if owner is not None:
            checks[ELSEWHERE] = partial(owner.is_ours)
        probes = Probes(self._configuration.health, checks)
        return [probes, self._metrics_server(), *served.values()]

    def _metrics_server(self) -> MetricsServer:
        for path in self._kinds.decisions if self._settings.serves_webhooks else ():
            self._metrics.prepare_webhook(path)
        authorizer = Authorizer(self._client, self._clock)
        address = self._configuration.metrics.bind_address
        return MetricsServer(address, self._metrics, authorizer, self._tls, self._certificate_work)

    def _webhooks(self) -> Webhooks:
        address = Address(self._configuration.webhook.host, self._configuration.webhook.port)

        def build(chain: bytes) -> WebhookServer:
            options = WebhookOptions(tls=self._tls, observe=self._metrics.count_webhook_request)
            return WebhookServer(address, chain, self._kinds.decisions, options)

        return Webhooks(address, build, self._find_certificates)

    async def _find_certificates(self, use: Use) -> None:
        if self._detection is not None:
            await self._detection.wait_until_known()  # webhooks are not served without a certificate
        internal = self._configuration.internal_cert_management
        if not internal.enable:

            async def use_file(chain: bytes) -> None:
                await self._certificate_ends.record_certificate("webhooks", chain)
                await use(chain)

            await CertificateFiles(Path(self._configuration.webhook.cert_dir), self._metrics).follow(use_file)
            return

        async def use_rotated(chain: bytes, until: datetime) -> None:
            self._certificate_ends.record("webhooks", until)
            await use(chain)

        service, secret = internal.webhook_service_name, internal.webhook_secret_name
        place = rotationloop.certificate_place(self._settings.namespace, service, secret)
        await Rotation(self._client, place, self._clock, self._certificate_work, use_rotated).run()

    def _leader_election(self) -> LeaderElection:
        return LeaderElection(
            self._client,
            election_settings(self._configuration, self._settings.namespace),
            self._clock,
            self._metrics.leadership(self._configuration.leader_election.resource_name),
        )

    def _controllers(self) -> Controllers:
        controllers = Controllers(
            self._kinds,
            Client(self._with_rate_limit(self._with_fence(self._shared)), outage=self._outage),
            clock=self._clock,
            instance=f"leaderworkerset-{socket.gethostname()}",
            instruments=self._instruments,
        )
        if not self._configuration.allows_pod_policies:
            controllers.add_component(PolicyRemoval(Client(self._with_fence(self._shared), outage=self._outage)))
        if self._recording is not None:
            from leaderworkerset.manager import flightrecorder  # it imports modules that other managers do not need

            bucket = TokenBucket(flightrecorder.QPS, flightrecorder.BURST)
            limited = LimitedTransport(self._with_fence(self._recording), bucket, self._clock)
            client = Client(limited, outage=self._outage)
            settings = self._configuration.recorder
            controllers.add_component(flightrecorder.FlightRecorder(controllers.caches, client, self._clock, settings))
        return controllers

    def _with_fence(self, transport: Transport) -> Transport:
        # The fence is last, so that a request delayed by the rate limiter is checked again before it is sent.
        return FencedTransport(transport, self._election) if self._election is not None else transport

    def _with_rate_limit(self, transport: Transport) -> Transport:
        connection = self._configuration.client_connection
        if connection.qps < 0:
            return transport
        return LimitedTransport(
            transport, TokenBucket(connection.qps, connection.burst), self._clock, self._metrics.record_throttling
        )

    def _transport(self, access: Access, fence: Fence | None = None) -> Transport:
        transport = HTTPTransport(access, user_agent=buildinfo.user_agent(), fence=fence)
        return ObservedTransport(transport, urlsplit(access.server).netloc, self._metrics)


def _is_ready(part: ProcessPart) -> bool:
    return part.is_ready


def election_settings(configuration: Configuration, namespace: str) -> ElectionSettings:
    """Return the leader election settings of this replica, with a unique identity."""
    election = configuration.leader_election
    return ElectionSettings(
        lease=ObjectKey(namespace, election.resource_name),
        identity=f"{socket.gethostname()}_{randomness.uid()}",
        lease_duration=election.lease_duration,
        renew_deadline=election.renew_deadline,
        retry_period=election.retry_period,
    )


def tls_settings(tls: config.TLS) -> TLSSettings:
    """Return the TLS settings of the servers (R-CFG-2)."""
    version = ssl.TLSVersion.TLSv1_3 if tls.min_version == config.TLS13 else ssl.TLSVersion.TLSv1_2
    return TLSSettings(version, ciphersuites.openssl_names(tls.cipher_suites))
