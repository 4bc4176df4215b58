"""The number of groups of a LeaderWorkerSet, changed through its scale subresource, as an autoscaler does."""

from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.resources import LEADERWORKERSETS

SCALER: Final = "lws-scale"
"""The field manager of a scaling; what it owns `lws apply` may take, for the same person said both."""


async def scale(client: Client, key: ObjectKey, groups: int) -> None:
    """Set the number of groups."""
    patch = {"spec": {"replicas": groups}}
    await client.patch(LEADERWORKERSETS, key, patch, kind="merge", subresource="scale", manager=SCALER)
