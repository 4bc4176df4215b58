"""Checks whether the API server reaches the webhooks, by creating a LeaderWorkerSet in a dry run.

Manager pods are ready some time before the network of each node routes the webhook Service to them.
"""

import asyncio
from typing import Final

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.errors import APIError, ConnectionFailedError, NotFoundError
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.resources import LEADERWORKERSETS

PROBE: Final[JSONObject] = {
    **LEADERWORKERSETS.type_meta,
    "metadata": {"name": "lws-admission-probe"},
    "spec": {
        "replicas": 0,
        "leaderWorkerTemplate": {
            "size": 1,
            "workerTemplate": {"spec": {"containers": [{"name": "main", "image": "none"}]}},
        },
    },
}

NOT_CALLED: Final = "failed calling webhook"
"""The responses of an API server that cannot reach a webhook."""

PAUSE: Final = 0.5
"""The interval between two probes in seconds."""


async def rejection(client: Client, namespace: str) -> APIError | None:
    """Return the reason why the API server rejects a LeaderWorkerSet in a dry run, or None if it accepts it."""
    probe = PROBE | {"metadata": {**PROBE["metadata"], "namespace": namespace}}
    try:
        await client.create(LEADERWORKERSETS, probe, dry_run=True)
    except APIError as error:
        return error
    return None


async def obstacle(client: Client, namespace: str) -> str:
    """Return the reason why webhooks cannot be reached, or an empty string if no reason is known."""
    try:
        denial = await rejection(client, namespace)
    except ConnectionFailedError as error:
        return str(error)
    is_late = isinstance(denial, NotFoundError) or NOT_CALLED in str(denial)
    return str(denial) if is_late else ""


async def wait_until_reachable(client: Client, namespace: str, timeout: float) -> None:
    """Wait until the webhooks can be reached. Raise TimeoutError with the last obstacle."""
    why = "no response"
    try:
        async with timeouts.within(timeout):
            while why := await obstacle(client, namespace):  # noqa: ASYNC110 - nothing reports it
                await asyncio.sleep(PAUSE)
    except TimeoutError as error:
        raise TimeoutError(why) from error
