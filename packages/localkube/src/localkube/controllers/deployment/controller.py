"""Runs the Deployment controller, which observes objects through caches and calls `deploymentcontrol.py`."""

from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import DEPLOYMENTS, REPLICA_SETS
from kuberuntime.plan import Plan
from localkube.controllers import controllerrefs
from localkube.controllers.deployment import deploymentcontrol, history, sizes


class DeploymentController(Struct, frozen=True, kw_only=True):
    """The driver with a client and its caches: ReplicaSets and pods by controller, and orphaned ReplicaSets."""

    deployments: Informer
    replicasets: Informer
    pods: Informer
    client: Client
    clock: Clock

    def watches(self) -> Sequence[Watch]:
        """Return the watches, with the Deployments that a change affects."""
        return (
            Watch(self.deployments, lambda change: [meta.key(change.object)]),
            Watch(self.replicasets, lambda change: controllerrefs.affected_owners(change, self.deployments)),
            Watch(self.pods, self._deployments_of_ended_pod),
        )

    async def plan(self, key: ObjectKey) -> Plan:
        """Return the plan for a Deployment. Owner references of ReplicaSets are updated before the ReplicaSets."""
        deployment = self.deployments.store.get(key)
        if deployment is None:
            return Plan()
        owned = self.replicasets.store.by_index(controllerrefs.BY_CONTROLLER, meta.uid(deployment))
        orphans = self.replicasets.store.by_index(controllerrefs.ORPHANS, meta.namespace(deployment))
        claimed = controllerrefs.claim(deployment, owned, orphans)
        owners = await controllerrefs.plan_owners(self.client, DEPLOYMENTS, deployment, REPLICA_SETS, claimed)
        return owners if owners is not None else deploymentcontrol.plan(self._observe(deployment, claimed.members))

    def _observe(self, deployment: JSONObject, sets: Sequence[JSONObject]) -> deploymentcontrol.ObservedDeployment:
        pods = (
            ()
            if sizes.is_rolling(deployment)
            else (self.pods.store.by_index(controllerrefs.BY_CONTROLLER, meta.uid(replica_set)) for replica_set in sets)
        )
        return deploymentcontrol.ObservedDeployment(
            deployment=deployment,
            sets=sets,
            pods=[*chain.from_iterable(pods)],
            collisions=self._collisions(deployment, sets),
            now=self.clock.now(),
        )

    def _collisions(self, deployment: JSONObject, sets: Sequence[JSONObject]) -> int:
        """Return the first collision count for which the name of the new ReplicaSet is unused."""
        collisions = int(meta.status(deployment).get("collisionCount") or 0)
        if history.find_new(deployment, sets) is not None:
            return collisions
        while self.replicasets.store.get(meta.key(history.build(deployment, collisions))) is not None:
            collisions += 1
        return collisions

    def _deployments_of_ended_pod(self, change: Change) -> Iterator[ObjectKey]:
        """Yield the Deployment whose new pods can be waiting for the termination of this pod."""
        owner = meta.controller_of(change.object)
        if owner and (change.new is None or podstate.has_ended(change.new)):
            replicaset = self.replicasets.store.get(ObjectKey(meta.namespace(change.object), owner["name"]))
            if replicaset is not None and meta.uid(replicaset) == owner["uid"]:
                yield from controllerrefs.owner_keys(replicaset, DEPLOYMENTS)
