"""Waits until the API server serves the kind of a definition that was just applied."""

from typing import Final

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.client.requests import only
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from leaderworkerset.cli.errors import TimedOutError

PATIENCE: Final = 30.0
"""Seconds for a definition to be established; a healthy API server takes one."""


async def until_established(client: Client, key: ObjectKey) -> None:
    """Return once the kind of a definition is served."""
    # Few manifests contain definitions; all others skip these imports.
    from kuberuntime.cache.informer import Informer
    from leaderworkerset.cli.watchwarnings import following

    informer = Informer(client, only(CUSTOM_RESOURCE_DEFINITIONS, key))

    def established() -> bool | None:
        return True if meta.is_condition_true(informer.store.get(key) or {}, "Established") else None

    try:
        async with timeouts.within(PATIENCE), following(informer) as objects:
            await objects.until(established)
    except TimeoutError as error:
        conditions = meta.status(informer.store.get(key) or {}).get("conditions") or []
        told = "; ".join(f"{one.get('type')} is {one.get('status')}: {one.get('message')}" for one in conditions)
        raise TimedOutError(
            f"customresourcedefinition/{key.name} is not established after {PATIENCE:g} s: {told or 'no controller acts'}"
        ) from error
