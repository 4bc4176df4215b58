"""Keeping certificates good: the loop that performs what `rotation.py` decides, on every replica alike (R-CERT-1).

It follows one secret and the two webhook configurations. Each reconciliation renews the secret where that is due, makes both
configurations trust its authorities, and only then gives the certificate to `serve`. Replicas need no leader: of two
that renew at once the API server takes the first, the other reads what that wrote.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import structlog

from kuberuntime.backoff import Backoff
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import only
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Write, Written
from kuberuntime.controller.loop import Loop, LoopOptions, Watch
from kuberuntime.controller.manager import Manager
from kuberuntime.errors import ConfigError, ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from leaderworkerset.webhooks import certificates, configurations, rotation
from leaderworkerset.webhooks.rotation import Material, Step

INTERVAL: Final = 12 * 3600.0
"""Seconds between two reconciliations without a change."""

SETTLE: Final = 5.0
"""Seconds that API servers get to load a new authority before a certificate of it is shown to them."""

AGAIN: Final = 1.0
"""Seconds after which a reconciliation is repeated that met a newer object than its cache had."""

RETRY: Final = Backoff(base=1.0, limit=60.0)

Serve: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Takes a certificate and its key, as one PEM, to be shown from now on."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Which secret holds the certificate, and the host name that API servers call."""

    secret: ObjectKey
    host: str


def place(namespace: str, service: str, secret: str) -> Place:
    """Return the place for a webhook service of a namespace."""
    return Place(ObjectKey(namespace, secret), f"{service}.{namespace}.svc")


class Rotation:
    """Runs until cancelled; `serve` gets every certificate once API servers trust it."""

    def __init__(self, client: Client, place: Place, clock: Clock, serve: Serve) -> None:
        self._client = client
        self._place = place
        self._clock = clock
        self._serve = serve
        self._served = b""
        self._signer = b""
        self._secret = Informer(client, only(SECRETS, place.secret))
        self._configurations = (
            _follow(client, MUTATING_WEBHOOK_CONFIGURATIONS, configurations.MUTATING_NAME),
            _follow(client, VALIDATING_WEBHOOK_CONFIGURATIONS, configurations.VALIDATING_NAME),
        )

    async def run(self) -> None:
        """Keep the certificates good; raise `ConfigError` if there is no secret to begin with."""
        await self._check()
        informers = (self._secret, *self._configurations)
        watches = [Watch(informer, lambda _: (self._place.secret,)) for informer in informers]
        loop = Loop("certificates", watches=watches, look=self.reconcile, options=LoopOptions(workers=1, backoff=RETRY))
        loop.enqueue(self._place.secret)
        await Manager(informers=informers, runnables=(loop,)).run()

    async def reconcile(self, _key: ObjectKey, writes: list[Write]) -> float | None:
        """Do what is due now; return when to reconcile again."""
        secret = self._secret.store.get(self._place.secret)
        if secret is None:
            raise ConfigError(missing(self._place.secret))
        material = rotation.read(secret.get("data") or {})
        now = self._clock.now()
        step = rotation.decide(material, (self._place.host,), now)
        try:
            if step is not Step.KEEP:
                await self._renew(secret, material, step, writes)
                return None  # the change of the secret enqueues the next one
            await self._trust(material.bundle, writes)
        except ConflictError:
            return AGAIN
        await self._show(material)
        return min(max((rotation.due_at(material) - now).total_seconds(), AGAIN), INTERVAL)

    async def _check(self) -> None:
        try:
            await self._client.get(SECRETS, self._place.secret)
        except NotFoundError as error:
            raise ConfigError(missing(self._place.secret)) from error

    async def _renew(self, secret: JSONObject, material: Material, step: Step, writes: list[Write]) -> None:
        renewed = await asyncio.to_thread(rotation.renew, material, step, (self._place.host,), self._clock.now())
        data = (secret.get("data") or {}) | rotation.write(renewed)
        written = await self._client.update(SECRETS, secret | {"data": data})
        writes.append(Written(SECRETS, meta.key(written), meta.resource_version(written)))
        log.info("certificates renewed", secret=str(self._place.secret), step=step.value)

    async def _trust(self, bundle: bytes, writes: list[Write]) -> None:
        for informer in self._configurations:
            found: Sequence[JSONObject] = informer.store.list()
            if not found:
                raise ConfigError(
                    f"{informer.resource.kind} not found: install the webhook configurations (lws install)"
                )
            for configuration in found:
                trusting = rotation.with_authority(configuration, bundle)
                if trusting is not configuration:
                    written = await self._client.update(informer.resource, trusting)
                    writes.append(Written(informer.resource, meta.key(written), meta.resource_version(written)))
                    log.info("authority injected", configuration=meta.name(configuration))

    async def _show(self, material: Material) -> None:
        """Serve the certificate, where it is another than before; a new authority gets time to be known."""
        chain = material.serving.chain
        signer = certificates.split(material.bundle)[0]
        if chain == self._served:
            return
        if self._served and signer != self._signer:
            await asyncio.sleep(SETTLE)
        await self._serve(chain)
        self._served, self._signer = chain, signer
        log.info("certificate served", until=certificates.expires_at(material.serving.certificate).isoformat())


def missing(secret: ObjectKey) -> str:
    """Return the message for an absent secret, with what to do."""
    return f"Secret {secret} not found: create it empty, the manager fills it (lws install does), or set internalCertManagement.enable to false"


def _follow(client: Client, resource: Resource, name: str) -> Informer:
    return Informer(client, only(resource, ObjectKey("", name)))
