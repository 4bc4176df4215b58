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


async def until_established(client: Client, key: ObjectKey, *, kubectl: str) -> None:
    """Return once the kind of a definition is served."""
    # Few manifests contain definitions; all others skip these imports.
    from kuberuntime.cache.informer import Informer
    from leaderworkerset.cli.watchwarnings import following

    informer = Informer(client, only(CUSTOM_RESOURCE_DEFINITIONS, key))

    def established() -> bool | None:
        found = informer.store.get(key)
        return True if found and meta.is_condition_true(found, "Established") else None

    try:
        async with timeouts.within(PATIENCE), following(informer) as objects:
            await objects.until(established)
    except TimeoutError as error:
        raise TimedOutError(
            f"customresourcedefinition/{key.name} is not established after {PATIENCE:g} s: "
            f"`{kubectl} describe crd {key.name}` says why"
        ) from error
