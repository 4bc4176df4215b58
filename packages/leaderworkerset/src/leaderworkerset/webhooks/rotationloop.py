"""Renews certificates on each replica according to `rotation.py` (R-CERT-1).

It watches one Secret and the two webhook configurations. Each plan renews the Secret if that is due, or makes both
configurations trust its CAs, unless its watch of the Secret is stale. The certificate is passed to `serve` only after
that. Replicas do not need a leader. If two renew at the same time, the API server accepts the first write, and the
other replica reads the result.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

import structlog
from msgspec import Struct

from kuberuntime.backoff import Backoff
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import select_one
from kuberuntime.clock import Clock, ClockJumps
from kuberuntime.controller.controller import Controller, ControllerOptions, Watch
from kuberuntime.controller.executor import Executor, NoEvents
from kuberuntime.controller.manager import Manager
from kuberuntime.errors import AlreadyExistsError, APIError, ConfigError, ConnectionFailedError, ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from kuberuntime.plan import Actions, Create, Plan, Put
from leaderworkerset.webhooks import configurations
from leaderworkerset.webhooks.certificatesubprocess import (
    AUTHORITY_CERTIFICATE,
    CertificateSubprocess,
    RotationResult,
    RotationStep,
)

INTERVAL: Final = 12 * 3600.0
"""The interval in seconds between two plans if no change occurs."""

LOOK_AT_CLOCK: Final = 60.0
"""The maximum delay in seconds of the next plan after a wall clock change, which can expire a certificate."""

SETTLE: Final = 5.0
"""The time in seconds in which API servers load a new CA before its certificate is served."""

SHORTEST: Final = 1.0
"""The minimum interval in seconds between two plans, even if a renewal is due immediately."""

BEHIND: Final = 1.0
"""The delay in seconds of the next plan while the watch of the Secret is outdated."""

RETRY: Final = Backoff(base=1.0, limit=60.0)

Serve: TypeAlias = Callable[[bytes, datetime], Awaitable[None]]
"""Uses a certificate and key in one PEM document, with their expiration time."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CertificatePlace(Struct, frozen=True):
    """The Secret with the certificate, and the host name that API servers use."""

    secret: ObjectKey
    host: str


def certificate_place(namespace: str, service: str, secret: str) -> CertificatePlace:
    """Return the Secret and host name for a webhook Service in a namespace."""
    return CertificatePlace(ObjectKey(namespace, secret), f"{service}.{namespace}.svc")


class Rotation:
    """Runs until cancelled. `serve` receives each certificate after API servers trust it."""

    def __init__(
        self, client: Client, place: CertificatePlace, clock: Clock, work: CertificateSubprocess, serve: Serve
    ) -> None:
        self._client = client
        self._work = work
        self._place = place
        self._clock = clock
        self._serve = serve
        self._served = b""
        self._signer = b""
        self._empty = configurations.certificate_secret(place.secret)
        self._secret = Informer(client, select_one(SECRETS, place.secret))
        self._configurations = (
            _build_informer(client, MUTATING_WEBHOOK_CONFIGURATIONS, configurations.MUTATING_NAME),
            _build_informer(client, VALIDATING_WEBHOOK_CONFIGURATIONS, configurations.VALIDATING_NAME),
        )

    async def run(self) -> None:
        """Renew the certificates. Raise `ConfigError` if the Secret cannot be created at startup."""
        await self._check()
        informers = (self._secret, *self._configurations)
        watches = [Watch(informer, lambda _: (self._place.secret,)) for informer in informers]
        controller = Controller(
            "certificates",
            watches=watches,
            plan=self.plan,
            executor=Executor(self._client, NoEvents(), self._clock),
            options=ControllerOptions(workers=1, backoff=RETRY),
        )
        controller.enqueue(self._place.secret)
        clock = _ClockFollower(self._clock, partial(controller.enqueue, self._place.secret))
        await Manager(informers=informers, runnables=(controller, clock)).run()

    async def plan(self, _key: ObjectKey) -> Plan:
        """Return the required writes. If there are none, serve the certificate."""
        secret = self._secret.store.get(self._place.secret)
        if secret is None:
            log.warning("creating the missing certificate secret", secret=str(self._place.secret))
            return Plan((Create(resource=SECRETS, object=self._empty, if_absent=True),))
        now = self._clock.now()
        due = await self._work.rotate(secret.get("data") or {}, (self._place.host,))
        if due.step is not RotationStep.KEEP:  # the next plan follows after the Secret has changed
            log.info("renewing certificates", secret=str(self._place.secret), step=due.step.value)
            return Plan((Put(resource=SECRETS, object=secret | {"data": dict(due.data)}),))
        if writes := self._trust(due.data[AUTHORITY_CERTIFICATE]):
            # A replica with an outdated watch would revert the CA that a different replica has added.
            current = await self._client.get(SECRETS, self._place.secret)
            if meta.resource_version(current) != meta.resource_version(secret):
                return Plan(requeue_after=BEHIND)
            return Plan(writes, requeue_after=0.0)
        await self._serve_certificate(due)
        return Plan(requeue_after=min(max((due.due - now).total_seconds(), SHORTEST), INTERVAL))

    async def _check(self) -> None:
        """Create the Secret if it does not exist. The API server might be unavailable when a node starts."""
        failures = 0
        while True:
            try:
                if await self._client.find(SECRETS, self._place.secret) is None:
                    await self._create()
            except (APIError, ConnectionFailedError) as error:
                failures += 1
                log.warning("failed to read the secret, retrying", error=str(error))
                await asyncio.sleep(RETRY.delay(failures))
            else:
                return

    async def _create(self) -> None:
        try:
            await self._client.create(SECRETS, self._empty)
        except AlreadyExistsError:  # a different replica was faster
            return
        except ForbiddenError as error:
            raise ConfigError(missing_secret_message(self._place.secret)) from error
        log.warning("created the missing certificate secret", secret=str(self._place.secret))

    def _trust(self, bundle: str) -> Actions:
        """Return the writes that add the CAs to configurations without them."""
        actions: Actions = ()
        for informer in self._configurations:
            objects = informer.store.list()
            if not objects:
                raise ConfigError(
                    f"{informer.resource.kind} not found. Run lws install to create the webhook configurations"
                )
            for configuration in objects:
                if configurations.other_namespace(configuration, self._place.secret.namespace):
                    continue  # it contains the CA of a different installation
                trusting = configurations.with_authority(configuration, bundle)
                if trusting is not configuration:
                    log.info("adding the CA to a webhook configuration", configuration=meta.name(configuration))
                    actions += (Put(resource=informer.resource, object=trusting),)
        return actions

    async def _serve_certificate(self, rotation: RotationResult) -> None:
        """Serve the certificate if it changed, after a delay during which API servers load a new CA."""
        if rotation.chain == self._served:
            return
        if self._served and rotation.signer != self._signer:
            await asyncio.sleep(SETTLE)
        await self._serve(rotation.chain, rotation.until)
        self._served, self._signer = rotation.chain, rotation.signer
        log.info("serving a new certificate", until=rotation.until.isoformat())


class _ClockFollower:
    """Triggers a plan after a wall clock change, because the interval between plans uses the monotonic clock."""

    def __init__(self, clock: Clock, plan_again: Callable[[], None]) -> None:
        self._jumps = ClockJumps(clock)
        self._plan_again = plan_again

    async def run(self) -> None:
        """Compare the clocks until cancelled."""
        while True:
            await asyncio.sleep(LOOK_AT_CLOCK)
            if self._jumps.measure():
                self._plan_again()


def missing_secret_message(secret: ObjectKey) -> str:
    """Return the message for a missing Secret, which describes the fix."""
    return (
        f"Secret {secret} not found, and the manager does not have permission to create it. Run lws install, or set "
        "internalCertManagement.enable to false"
    )


def _build_informer(client: Client, resource: Resource, name: str) -> Informer:
    return Informer(client, select_one(resource, ObjectKey("", name)))
