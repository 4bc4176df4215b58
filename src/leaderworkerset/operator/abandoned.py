"""Pods kept as evidence of failed groups while the operator keeps no manager: those that nobody else would let go (N-RB-16).

In: pods, LeaderWorkerSets and namespaces as they are when it is asked. Out: a plan that takes the finalizer off the pods
of LeaderWorkerSets that are gone or end, and asks again. Evidence of LeaderWorkerSets that stay is left: without a manager
their StatefulSets would create leaders alone.
"""

from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NAMESPACES, PODS
from kuberuntime.plan import Plan
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts import retention

SOON: Final = 10.0
"""Seconds until it is looked again at pods that are kept."""

LATER: Final = 300.0
"""Seconds until it is looked again where none is kept: a manager that still ends may keep one."""


class AbandonedEvidence:
    """Lets pods go while there is no manager, by the permissions that the operator holds because it grants them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def release(self) -> Plan:
        """Return the plan that lets go what nobody else would, workers before their leaders."""
        pods = await self._client.list(PODS, label_selector=labels.NAME)
        kept = [pod for pod in pods.items if retention.is_kept(pod)]
        if not kept:
            return Plan(requeue_after=LATER)
        living = await self._living()
        ending = {one for one in {meta.namespace(pod) for pod in kept} if await self._is_ending(one)}
        free = [pod for pod in kept if retention.set_of(pod) not in living or meta.namespace(pod) in ending]
        return Plan(retention.release(free), requeue_after=SOON)

    async def _living(self) -> set[ObjectKey]:
        """Return the LeaderWorkerSets that stay; without their definition there are none."""
        try:
            found = await self._client.list(LEADERWORKERSETS)
        except NotFoundError:
            return set()
        return {meta.key(one) for one in found.items if not meta.is_deleting(one)}

    async def _is_ending(self, namespace: str) -> bool:
        found = await self._client.find(NAMESPACES, ObjectKey("", namespace))
        return found is None or meta.is_deleting(found)
