"""The number of groups of a LeaderWorkerSet, changed through its scale subresource, as an autoscaler does."""

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS


async def scale(client: Client, key: ObjectKey, groups: int) -> None:
    """Set the number of groups."""
    patch = {"spec": {"replicas": groups}}
    await client.patch(LEADERWORKERSETS, key, patch, kind="merge", subresource="scale", manager=labels.SCALE_MANAGER)
