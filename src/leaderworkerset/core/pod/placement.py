"""Exclusive topology: workers go where their leader went (R-WSTS-6).

In: the LeaderWorkerSet, the leader pod, the node it runs on. Out: the node selector of the workers, or that it is too
early to say.
"""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet


class PlacementError(ValueError):
    """The leader's node does not tell where its workers belong."""


def is_exclusive(lws: LeaderWorkerSet) -> bool:
    """Return whether the groups shall each have a topology domain of their own; the key counts, even without a value."""
    return labels.EXCLUSIVE_TOPOLOGY in lws.annotations


def node_name(pod: JSONObject) -> str:
    """Return the node the pod was bound to, empty before."""
    return str(meta.spec(pod).get("nodeName") or "")


def node_selector(lws: LeaderWorkerSet, leader: JSONObject, node: JSONObject | None) -> dict[str, str]:
    """Return the selector that keeps workers in the leader's domain; `node` is the leader's, None where it is gone."""
    if not is_exclusive(lws):
        return {}
    name, topology = node_name(leader), lws.annotations[labels.EXCLUSIVE_TOPOLOGY]
    if node is None:
        raise PlacementError(f'getting node "{name}": nodes "{name}" not found')
    if topology not in meta.labels(node):
        raise PlacementError(f"node does not have topology label: {topology} (node {name})")
    return {topology: meta.labels(node)[topology]}
