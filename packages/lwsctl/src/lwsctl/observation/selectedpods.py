"""Reads the pods in a selection."""

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from lwsctl.model.leaderworkerset import sort_key
from lwsctl.views.selection import Filter


async def read(client: Client, namespace: str, pod_filter: Filter) -> list[JSONObject]:
    """Return the pods of a LeaderWorkerSet that match a filter, by group and rank."""
    selector = pod_filter.selection.label_selector()
    listing = await client.list(PODS, namespace=namespace, label_selector=selector)
    return sorted(filter(pod_filter.covers, listing.items), key=sort_key)
