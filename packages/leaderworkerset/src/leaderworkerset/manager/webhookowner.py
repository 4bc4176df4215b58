"""Detects whether the cluster's webhook configurations refer to a manager in a different namespace.

A cluster has one set of them. A manager of a different installation writes the same objects, so only the manager whose
webhooks are called may lead. Without the permission to read the configurations, this manager leads.
"""

import asyncio
from typing import Final

import structlog

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import select_one
from kuberuntime.errors import ForbiddenError, UnauthorizedError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.webhooks import configurations

CONFIGURATIONS: Final = (
    (MUTATING_WEBHOOK_CONFIGURATIONS, configurations.MUTATING_NAME),
    (VALIDATING_WEBHOOK_CONFIGURATIONS, configurations.VALIDATING_NAME),
)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class WebhookOwner:
    """Watches the webhook configurations. `other` is the different namespace to which they refer, or empty."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.other = ""
        self._namespace = namespace
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._informers = [
            Informer(client, select_one(resource, ObjectKey("", name))) for resource, name in CONFIGURATIONS
        ]
        for informer in self._informers:
            informer.subscribe(self._note)

    def is_ours(self) -> bool:
        """Return whether the webhooks do not refer to a different namespace."""
        return not self.other

    async def watch(self) -> None:
        """Watch the configurations until cancelled, or until the API server denies access."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for informer in self._informers:
                    tasks.create_task(informer.run(gives_up=True))
        except* (ForbiddenError, UnauthorizedError) as errors:
            log.info(
                "failed to read the webhook configurations, so this manager can become the leader",
                error=str(errors.exceptions[0]),
            )
            self._ended.set()

    async def wait_until_known(self) -> None:
        """Wait until the configurations have been read, or access was denied."""
        synced = asyncio.gather(*(informer.wait_synced() for informer in self._informers))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((synced, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
            ended.cancel()

    async def wait_until(self, *, ours: bool) -> None:
        """Wait until the webhooks start or stop referring to this manager."""
        while self.is_ours() is not ours:
            self._changed.clear()
            await self._changed.wait()

    def _note(self, _: Change) -> None:
        objects = [obj for informer in self._informers for obj in informer.store.list()]
        other = max((configurations.other_namespace(obj, self._namespace) for obj in objects), default="")
        if other and other != self.other:
            log.error(
                (
                    "this manager cannot become the leader, because the webhook configurations refer to a different "
                    "installation. Uninstall one of them"
                ),
                namespace=other,
            )
        elif self.other and not other:
            log.info("the webhook configurations refer to this manager again")
        self.other = other
        self._changed.set()
