"""The quota of pods in the cluster, refused with the message of a ResourceQuota.

One quota applies to all namespaces together. It counts all stored pods in any phase, as a quota of `count/pods` does.
"""

from typing import Final

from kuberuntime.objects.resources import PODS
from localkube.apiserver.model import refusal
from localkube.apiserver.storage.store import Store

NAME: Final = "max-pods"


def require_quota(store: Store, name: str, limit: int) -> None:
    """Refuse a new pod if the cluster has `limit` pods."""
    used = store.count(PODS.group_resource)
    if used >= limit:
        raise refusal.forbidden(
            PODS,
            name,
            f"exceeded quota: {NAME}, requested: count/pods=1, used: count/pods={used}, limited: count/pods={limit}",
        )
