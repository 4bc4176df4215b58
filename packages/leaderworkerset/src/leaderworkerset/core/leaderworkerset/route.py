"""How a capability takes part in a rollout: which of the released groups are recreated, and which are not."""

from typing import Protocol

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.leaderworkerset.fold import Folded


class RolloutRoute(Protocol):
    """How groups of older revisions come to another one."""

    def release(self, statefulset: JSONObject, folded: Folded, size: int, span: range) -> tuple[int, int]:
        """Return which groups of the released `span` of indexes need no other pod, and the partition that keeps them."""
