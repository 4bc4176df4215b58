"""Runs the StatefulSet controller, which observes objects through caches and calls `setcontrol.py`.

Pods, claims and revisions are found by index, so that the cost of a plan depends on the StatefulSet, not on the
cluster.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from kuberuntime.plan import Actions, Create, Plan, guarded_patch
from localkube.controllers import controllerrefs
from localkube.controllers.statefulset import identity, podclaims, revisions
from localkube.controllers.statefulset.setcontrol import ObservedStatefulSet, missing_ordinals
from localkube.controllers.statefulset.setcontrol import plan as plan_set

BY_PARENT = "orphans by the set in their names"


def orphan_pod_index(pod: JSONObject) -> Iterable[str]:
    """Index a pod without a controller by the StatefulSet in its name."""
    parts = identity.parse_pod_name(meta.name(pod))
    return [f"{meta.namespace(pod)}/{parts[0]}"] if parts and not meta.controller_of(pod) else []


class StatefulSetController(Struct, frozen=True, kw_only=True):
    """The driver with a client and its caches: StatefulSets, claims, and pods and revisions with the indexes above."""

    statefulsets: Informer
    pods: Informer
    revisions: Informer
    claims: Informer
    client: Client
    clock: Clock

    def watches(self) -> Sequence[Watch]:
        """Return the watches, with the StatefulSets that a change affects."""
        return (
            Watch(self.statefulsets, lambda change: [meta.key(change.object)]),
            Watch(self.pods, self._sets_of_pod),
            Watch(self.claims, self._sets_of_lost_claim),
            Watch(self.revisions, lambda change: controllerrefs.owner_keys(change.object, STATEFULSETS)),
        )

    async def plan(self, key: ObjectKey) -> Plan:
        """Return the plan for a StatefulSet. Owner references of pods and revisions are updated before the pods."""
        statefulset = self.statefulsets.store.get(key)
        if statefulset is None:
            return Plan()
        claimed = self._claim_pods(statefulset)
        owners = await self._change_owners(statefulset, claimed)
        if owners or claimed.released or claimed.adopted:
            return Plan(owners)
        return plan_set(self._observe(statefulset, claimed.members))

    def _claim_pods(self, statefulset: JSONObject) -> controllerrefs.ClaimedObjects:
        owned = self.pods.store.by_index(controllerrefs.BY_CONTROLLER, meta.uid(statefulset))
        orphans = self.pods.store.by_index(BY_PARENT, str(meta.key(statefulset)))
        return controllerrefs.claim(statefulset, owned, orphans, partial(identity.is_member, statefulset))

    async def _change_owners(self, statefulset: JSONObject, claimed: controllerrefs.ClaimedObjects) -> Actions:
        orphans = self._orphan_revisions(statefulset)
        may_adopt = bool(orphans or claimed.adopted) and await controllerrefs.is_alive(
            self.client, STATEFULSETS, statefulset
        )
        revised = [controllerrefs.adopt(CONTROLLER_REVISIONS, statefulset, orphan) for orphan in orphans if may_adopt]
        released = [controllerrefs.release(PODS, statefulset, pod) for pod in claimed.released]
        adopted = [controllerrefs.adopt(PODS, statefulset, pod) for pod in claimed.adopted if may_adopt]
        return (*revised, *released, *adopted)

    def _orphan_revisions(self, statefulset: JSONObject) -> list[JSONObject]:
        if meta.is_deleting(statefulset):
            return []
        selector = controllerrefs.owner_selector(statefulset)
        return [
            revision
            for revision in self.revisions.store.by_index(controllerrefs.ORPHANS, meta.namespace(statefulset))
            if selector.matches(meta.labels(revision)) and not meta.is_deleting(revision)
        ]

    def _observe(self, statefulset: JSONObject, pods: Sequence[JSONObject]) -> ObservedStatefulSet:
        history = revisions.sort_revisions(
            self.revisions.store.by_index(controllerrefs.BY_CONTROLLER, meta.uid(statefulset))
        )
        update, collisions, renewal = self._update_revision(statefulset, history)
        return ObservedStatefulSet(
            statefulset=statefulset,
            pods=pods,
            claims=self._claims_of(statefulset, pods),
            current=revisions.choose_current(statefulset, history, update),
            update=update,
            collisions=collisions,
            now=self.clock.now(),
            history=history,
            revision_actions=renewal,
        )

    def _update_revision(
        self, statefulset: JSONObject, history: Sequence[JSONObject]
    ) -> tuple[JSONObject, int, Actions]:
        """Return the update revision, the collision count, and the actions that create or renumber the revision.

        A StatefulSet that is being deleted needs a revision only for its status. The revision is not written, because
        the garbage collector would have to delete it again.
        """
        collisions = int(meta.status(statefulset).get("collisionCount") or 0)
        match revisions.choose_update(statefulset, history):
            case revisions.CurrentRevision(revision):
                return revision, collisions, ()
            case _ if meta.is_deleting(statefulset):
                return revisions.build(statefulset, 0, collisions), collisions, ()
            case revisions.RenumberedRevision(revision, number):
                raised = guarded_patch(CONTROLLER_REVISIONS, revision, {"revision": number})
                return revision | {"revision": number}, collisions, (raised,)
            case revisions.NewRevision(number):
                return self._new_revision(statefulset, number, collisions)

    def _new_revision(self, statefulset: JSONObject, number: int, collisions: int) -> tuple[JSONObject, int, Actions]:
        """Build a revision with the first name that no different template uses."""
        while True:
            revision = revisions.build(statefulset, number, collisions)
            existing = self.revisions.store.get(meta.key(revision))
            if existing is None:
                return revision, collisions, (Create(resource=CONTROLLER_REVISIONS, object=revision),)
            if existing.get("data") == revision["data"]:
                return existing, collisions, ()
            collisions += 1

    def _claims_of(self, statefulset: JSONObject, pods: Iterable[JSONObject]) -> dict[str, JSONObject]:
        if not podclaims.claim_templates(statefulset):
            return {}
        missing_pods = {identity.pod_name(statefulset, ordinal) for ordinal in missing_ordinals(statefulset, pods)}
        names = [
            name for pod in missing_pods.union(map(meta.name, pods)) for name in podclaims.claim_names(statefulset, pod)
        ]
        claims = {name: self.claims.store.get(ObjectKey(meta.namespace(statefulset), name)) for name in names}
        return {name: claim for name, claim in claims.items() if claim is not None}

    def _sets_of_pod(self, change: Change) -> Iterator[ObjectKey]:
        for pod in (change.old, change.new):
            if pod is None:
                continue
            yield from controllerrefs.owner_keys(pod, STATEFULSETS)
            for parent in orphan_pod_index(pod):
                yield ObjectKey(*parent.split("/"))

    def _sets_of_lost_claim(self, change: Change) -> Iterator[ObjectKey]:
        """Yield the StatefulSets that can be waiting for the deletion of a claim, or must recreate the claim."""
        if change.new is not None:
            return
        for statefulset in self.statefulsets.store.list():
            if meta.namespace(statefulset) == meta.namespace(change.object) and podclaims.claim_templates(statefulset):
                yield meta.key(statefulset)
