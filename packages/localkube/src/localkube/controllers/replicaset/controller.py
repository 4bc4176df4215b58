"""Runs the ReplicaSet controller, which observes objects through caches and calls `replicacontrol.py`.

Pod names are random, so a plan based on a cache without the last created pods would create more pods. Therefore,
assigned names whose pods were not observed yet are used first, so that an existing pod is not created again.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct, field

from kuberuntime import randomness
from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, REPLICA_SETS
from kuberuntime.plan import Plan
from localkube.controllers import controllerrefs
from localkube.controllers.replicaset import replicacontrol
from localkube.controllers.templatehash import SAFE_CHARACTERS

LONGEST_PREFIX: Final = 57
"""The maximum length of the ReplicaSet name in a pod name, which is a host name of at most 63 characters."""


class ReplicaSetController(Struct, frozen=True, kw_only=True):
    """The driver with a client and its caches: pods and ReplicaSets with the indexes above."""

    replicasets: Informer
    pods: Informer
    client: Client
    clock: Clock
    _unobserved: dict[UID, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def watches(self) -> Sequence[Watch]:
        """Return the watches, with the ReplicaSets that a change affects."""
        return (
            Watch(self.replicasets, self._changed_set),
            Watch(self.pods, self._sets_of_pod),
        )

    async def plan(self, key: ObjectKey) -> Plan:
        """Return the plan for a ReplicaSet, which updates the owner references of pods before the pods."""
        replicaset = self.replicasets.store.get(key)
        if replicaset is None:
            return Plan()
        owned = self.pods.store.by_index(controllerrefs.BY_CONTROLLER, meta.uid(replicaset))
        orphans = self.pods.store.by_index(controllerrefs.ORPHANS, meta.namespace(replicaset))
        orphans = [pod for pod in orphans if replicacontrol.is_active(pod)]
        claimed = controllerrefs.claim(replicaset, owned, orphans)
        owners = await controllerrefs.plan_owners(self.client, REPLICA_SETS, replicaset, PODS, claimed)
        return owners if owners is not None else replicacontrol.plan(self._observe(replicaset, claimed.members))

    def _observe(self, replicaset: JSONObject, pods: Sequence[JSONObject]) -> replicacontrol.ObservedReplicaSet:
        missing = replicacontrol.missing_pods(replicaset, pods)
        return replicacontrol.ObservedReplicaSet(
            replicaset=replicaset,
            pods=pods,
            related=self._related_pods(replicaset) if missing < 0 else (),
            names=self._names(replicaset, min(missing, replicacontrol.AT_ONCE)),
            now=self.clock.now(),
        )

    def _names(self, replicaset: JSONObject, number: int) -> Sequence[str]:
        """Return names for new pods. Start with assigned names whose pods are not yet observed."""
        if number <= 0:
            return ()
        unseen = self._unobserved[meta.uid(replicaset)]
        while len(unseen) < number:
            suffix = "".join(randomness.source().choices(SAFE_CHARACTERS, k=5))
            unseen[f"{meta.name(replicaset)[:LONGEST_PREFIX]}-{suffix}"] = None
        return [*unseen][:number]

    def _related_pods(self, replicaset: JSONObject) -> list[JSONObject]:
        """Return the pods of all ReplicaSets with the same controller, including this ReplicaSet."""
        owner = meta.controller_of(replicaset)
        siblings = (
            self.replicasets.store.by_index(controllerrefs.BY_CONTROLLER, owner["uid"]) if owner else [replicaset]
        )
        pods = (self.pods.store.by_index(controllerrefs.BY_CONTROLLER, meta.uid(sibling)) for sibling in siblings)
        return list(chain.from_iterable(pods))

    def _changed_set(self, change: Change) -> Iterator[ObjectKey]:
        if change.new is None:
            self._unobserved.pop(meta.uid(change.object), None)
        yield meta.key(change.object)

    def _sets_of_pod(self, change: Change) -> Iterator[ObjectKey]:
        owner = meta.controller_of(change.object)
        if owner:
            self._unobserved.get(UID(owner["uid"]), {}).pop(meta.name(change.object), None)
        yield from controllerrefs.affected_owners(change, self.replicasets)
