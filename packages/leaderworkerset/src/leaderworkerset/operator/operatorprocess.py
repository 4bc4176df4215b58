"""Runs the components of `lws operator` as a process.

```
every replica                                     only the leader, under the lease
  probes and metrics  :8443                         controllers  operatorcontroller.py, through manager/leadership.py
  leader election            kuberuntime/serving/leaderelection.py
  files that end it          `--terminate-on-files`
```
"""

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from msgspec import Struct

import leaderworkerset
from kuberuntime import randomness, timeouts, tlsbuffers
from kuberuntime.access import kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.backoff import Backoff
from kuberuntime.client.client import Client
from kuberuntime.client.fence import Fence, FencedTransport
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.outage import Outage
from kuberuntime.client.transport import Transport
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.controller.workqueue import BACKOFF
from kuberuntime.errors import KubeError
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.serving import delegatedauth
from kuberuntime.serving.bindaddresses import parse_address
from kuberuntime.serving.certfiles import CertificateFiles
from kuberuntime.serving.delegatedauth import Authorizer
from kuberuntime.serving.leaderelection import ElectionSettings, LeaderElection
from kuberuntime.serving.metrics import CONTENT_TYPE, Metrics, ObservedTransport
from kuberuntime.serving.serving import Listener
from kuberuntime.serving.signals import stop_event
from leaderworkerset.controllers.instruments import NO_INSTRUMENTS, KindMetrics, Meter
from leaderworkerset.install.operatornames import LEASE, OPERATORS, REPORTER
from leaderworkerset.kinds.kind import Definition, Kind
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager import buildinfo, components, metricsserver
from leaderworkerset.manager.components import AlwaysReady, ProcessPart, run_in_background
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.leadership import LeaderRunner
from leaderworkerset.operator import operatorcontroller
from leaderworkerset.operator.openshift import INFRASTRUCTURES, election_times
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorcrd import operator_crd
from leaderworkerset.operator.sync import RESYNC
from leaderworkerset.operator.verbosity import Verbosity
from leaderworkerset.webhooks.certificatesubprocess import CertificateSubprocess


def registry(place: OperatorPlace, verbosity: Verbosity) -> Registry:
    """Return the kinds of the operator."""
    kind = Kind(
        resource=OPERATORS,
        definition=Definition(operator_crd, _with_descriptions),
        controllers=operatorcontroller.controllers(place, verbosity),
        metrics=(build_metrics,),
    )
    return Registry((kind,), reporter=REPORTER)


def _with_descriptions(_document: JSONObject) -> JSONObject:
    """Return the CRD, which always includes descriptions."""
    return operator_crd()


def build_metrics(meter: Meter) -> KindMetrics:
    """Register the build information metric (R-OP-11)."""
    from prometheus_client import CollectorRegistry, Gauge

    from leaderworkerset.manager import buildinfo

    own = CollectorRegistry()
    names = ("major", "minor", "gitCommit", "gitVersion")
    gauge = Gauge("openshift_lws_operator_build_info", "Build information of the operator.", names, registry=own)
    version = buildinfo.version()
    major, minor = version.removeprefix("v").split(".")[:2]
    gauge.labels(major, minor, buildinfo.commit(), version).set(1)
    meter.register(gauge)
    return NO_INSTRUMENTS


CERTIFICATES: Final = Path("/var/run/secrets/serving-cert")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class OperatorServer(AlwaysReady):
    """Serves health checks and metrics at `address`. It is ready if `leading` is ready. Certificates are reloaded."""

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
        """Serve while the context is active."""
        files = CertificateFiles(CERTIFICATES, self._metrics)
        async with (
            aclosing(CertificateSubprocess(self._clock)) as work,
            metricsserver.serving_tls_context(files, work) as context,
            Listener(self._application(), self._address, context, name="operator"),
        ):
            log.info("serving probes and metrics", address=str(self._address))
            yield

    def _application(self) -> web.Application:
        application = delegatedauth.application(
            metricsserver.PATH, self._metrics.render, CONTENT_TYPE, self._authorizer
        )
        application.add_routes(
            [web.get("/healthz", _alive), web.get("/livez", _alive), web.get("/readyz", self._ready)]
        )
        return application

    async def _ready(self, _request: web.Request) -> web.Response:
        if self._leading.is_ready:
            return web.Response(text="ok")
        return web.Response(status=503, text="not ready: caches have not synced")


async def _alive(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


COMPARE_SECONDS: Final = 10.0
"""The interval in seconds for comparing the files whose changes stop the process."""

RETRY: Final = Backoff(base=BACKOFF.base, limit=RESYNC)
"""The maximum time in seconds until the next sync.

It also applies to failures, because their cause might not be watched.
"""

TOPOLOGY_SECONDS: Final = 5.0
"""The timeout in seconds for reading the topology. Probes and stop requests are not handled at this time."""


class OperatorProcessSettings(Struct, frozen=True, kw_only=True):
    """The combined settings from command line and environment."""

    namespace: str
    image: str
    kubeconfig: str = ""
    listen: str = "0.0.0.0:8443"
    terminate_on: tuple[str, ...] = ()


async def run_until_stopped(settings: OperatorProcessSettings, verbosity: Verbosity) -> None:
    """Run the operator until this process is stopped."""
    tlsbuffers.reduce_buffer_size()
    async with stop_event() as stopped:
        await OperatorProcess(settings, verbosity, SystemClock()).run(stopped)


class OperatorProcess:
    """An operator replica."""

    def __init__(self, settings: OperatorProcessSettings, verbosity: Verbosity, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        place = OperatorPlace(
            namespace=settings.namespace, image=settings.image, version=leaderworkerset.__version__, declared=MANAGED
        )
        self._kinds = registry(place, verbosity)
        self._metrics = Metrics()
        self._instruments = self._kinds.instruments(self._metrics)
        self._access = kubeconfig.load(os.environ, kubeconfig=settings.kubeconfig)
        self._own = self._transport(self._access)
        self._outage = Outage(log)
        self._client = Client(self._own, outage=self._outage)

    async def run(self, stopped: asyncio.Event) -> None:
        """Run until `stopped` is set, or until a file in `terminate_on` changes."""
        shared: Transport | None = None
        try:
            election = LeaderElection(
                self._client, await self._election_settings(), self._clock, self._metrics.leadership(LEASE)
            )
            shared = self._transport(self._access, election)
            fenced = FencedTransport(shared, election)
            leading = LeaderRunner(lambda: self._controllers(fenced), election=election)
            authorizer = Authorizer(self._client, self._clock)
            server = OperatorServer(self._settings.listen, self._metrics, authorizer, leading, self._clock)
            async with stop_on_file_change(self._settings.terminate_on, stopped):
                await components.run([server, leading], stopped)
        finally:
            await self._own.close()
            if shared is not None:
                await shared.close()
        log.info("stopped", logger="setup")

    def _controllers(self, transport: Transport) -> Controllers:
        return Controllers(
            self._kinds,
            Client(transport, outage=self._outage),
            clock=self._clock,
            instance=f"{self._kinds.reporter}-{socket.gethostname()}",
            instruments=self._instruments,
            backoff=RETRY,
        )

    async def _election_settings(self) -> ElectionSettings:
        lease, renewal, retry = election_times(await self._infrastructure())
        return ElectionSettings(
            lease=ObjectKey(self._settings.namespace, LEASE),
            identity=f"{socket.gethostname()}_{randomness.uid()}",
            lease_duration=lease,
            renew_deadline=renewal,
            retry_period=retry,
        )

    async def _infrastructure(self) -> JSONObject:
        try:
            async with timeouts.within(TOPOLOGY_SECONDS):
                return await self._client.get(INFRASTRUCTURES, ObjectKey("", "cluster"))
        except (KubeError, TimeoutError) as error:
            log.debug("cannot determine the topology, using the default lease settings", error=str(error))
            return {}

    def _transport(self, access: Access, fence: Fence | None = None) -> Transport:
        transport = HTTPTransport(access, user_agent=buildinfo.user_agent(), fence=fence)
        return ObservedTransport(transport, urlsplit(access.server).netloc, self._metrics)


@asynccontextmanager
async def stop_on_file_change(paths: Sequence[str], stopped: asyncio.Event) -> AsyncIterator[None]:
    """Set `stopped` if the content of a file changes while the context is active."""
    if not paths:
        yield
        return
    async with run_in_background(_compare(paths, stopped)):
        yield


async def _compare(paths: Sequence[str], stopped: asyncio.Event) -> None:
    first = contents(paths)
    changed: list[str] = []
    while not changed:
        await asyncio.sleep(COMPARE_SECONDS)
        changed = [path for path, then, now in zip(paths, first, contents(paths), strict=True) if then != now]
    log.info("stopping because a file changed", files=changed)
    stopped.set()


def contents(paths: Sequence[str]) -> list[str]:
    """Return the hash of each file, or an empty string for missing files."""
    return [hashlib.sha256(Path(path).read_bytes()).hexdigest() if Path(path).is_file() else "" for path in paths]
