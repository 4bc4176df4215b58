"""How many pods the cluster may have: refused with the words of a ResourceQuota, which this stands in for.

One quota holds for all namespaces together. It counts the pods that are stored, whatever became of them, as a quota of
`count/pods` does.
"""

from typing import Final

from kuberuntime.objects.resources import PODS
from localkube.apiserver.model import refusal
from localkube.apiserver.storage.store import Store

NAME: Final = "max-pods"


def require_quota(store: Store, name: str, limit: int) -> None:
    """Refuse a pod more than the cluster may have."""
    used = store.count(PODS.group_resource)
    if used >= limit:
        raise refusal.forbidden(
            PODS,
            name,
            f"exceeded quota: {NAME}, requested: count/pods=1, used: count/pods={used}, limited: count/pods={limit}",
        )
