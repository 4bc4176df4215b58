"""The driver of the StatefulSet controller: observes through caches, lets `plan.py` decide, performs.

Pods, claims and revisions are found by indexes, so that a look costs as much as the set is large, not the cluster.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import ActionError, Executor, Write
from kuberuntime.controller.loop import Watch
from kuberuntime.errors import AlreadyExistsError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from kuberuntime.plan import Delete, PutStatus
from localkube.controllers.framework.session import Session
from localkube.controllers.framework.steps import guarded_patch
from localkube.controllers.statefulset import claims, identity, ownership, plan, revisions, status

BY_CONTROLLER = "controller"
ORPHANS = "orphans"


def controller_index(obj: JSONObject) -> Iterable[str]:
    """File an object under the UID of its controller."""
    reference = meta.controller_of(obj)
    return [reference.get("uid", "")] if reference else []


def orphan_pod_index(pod: JSONObject) -> Iterable[str]:
    """File a pod without controller under the set its name speaks of."""
    parsed = identity.parse_pod_name(meta.name(pod))
    return [f"{meta.namespace(pod)}/{parsed[0]}"] if parsed and not meta.controller_of(pod) else []


def orphan_revision_index(revision: JSONObject) -> Iterable[str]:
    """File a revision without controller under its namespace."""
    return [] if meta.controller_of(revision) else [meta.namespace(revision)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulSets:
    """What the controller reads (pods and revisions with the indexes above, all sets, all claims) and writes by."""

    sets: Informer
    pods: Informer
    revisions: Informer
    claims: Informer
    client: Client
    executor: Executor
    clock: Clock

    def watches(self) -> Sequence[Watch]:
        """Say what to look at, and which sets a change concerns."""
        return (
            Watch(self.sets, lambda change: [meta.key(change.object)]),
            Watch(self.pods, self._sets_of_pod),
            Watch(self.claims, self._sets_of_lost_claim),
            Watch(self.revisions, lambda change: _owner_keys(change.object)),
        )

    async def look(self, key: ObjectKey, writes: list[Write]) -> float | None:
        """Bring one set nearer to what it should be."""
        session = Session(self.client, self.executor, writes)
        statefulset = self.sets.store.get(key)
        if statefulset is None:
            return None
        claimed = self._claim_pods(statefulset)
        history = await self._history(statefulset, session)
        if claimed.released or claimed.adopted:
            await self._change_owners(statefulset, claimed, session)
            return None
        observed = await self._observe(statefulset, claimed.members, history, session)
        decided = plan.plan(observed)
        try:
            for phase in decided.phases:
                await session.perform_together(phase)
        finally:
            await self._write_status(statefulset, decided.status, session)
        await self._truncate_history(observed, history, session)
        return decided.look_again

    def _claim_pods(self, statefulset: JSONObject) -> ownership.Claimed:
        owned = self.pods.store.by_index(BY_CONTROLLER, meta.uid(statefulset))
        orphans = self.pods.store.by_index(ORPHANS, str(meta.key(statefulset)))
        return ownership.claim(statefulset, owned, orphans)

    async def _change_owners(self, statefulset: JSONObject, claimed: ownership.Claimed, session: Session) -> None:
        await session.perform(*(ownership.release(PODS, statefulset, pod) for pod in claimed.released))
        if claimed.adopted and await _is_alive(statefulset, session):
            await session.perform(*(ownership.adopt(PODS, statefulset, pod) for pod in claimed.adopted))

    async def _history(self, statefulset: JSONObject, session: Session) -> list[JSONObject]:
        """Return the revisions of the set, oldest first, after adopting those that lost their owner."""
        owned = list(self.revisions.store.by_index(BY_CONTROLLER, meta.uid(statefulset)))
        selector = ownership.selector_of(statefulset)
        orphans = [
            revision
            for revision in self.revisions.store.by_index(ORPHANS, meta.namespace(statefulset))
            if selector.matches(meta.labels(revision)) and not meta.is_deleting(revision)
        ]
        if orphans and not meta.is_deleting(statefulset) and await _is_alive(statefulset, session):
            owned += [
                await session.patch(ownership.adopt(CONTROLLER_REVISIONS, statefulset, orphan)) for orphan in orphans
            ]
        return revisions.order(owned)

    async def _observe(
        self, statefulset: JSONObject, pods: Sequence[JSONObject], history: list[JSONObject], session: Session
    ) -> plan.Observed:
        update, collisions = await _update_revision(statefulset, history, session)
        return plan.Observed(
            statefulset=statefulset,
            pods=pods,
            claims=self._claims_of(statefulset, pods),
            current=revisions.choose_current(statefulset, history, update),
            update=update,
            collisions=collisions,
            now=self.clock.now(),
        )

    def _claims_of(self, statefulset: JSONObject, pods: Iterable[JSONObject]) -> dict[str, JSONObject]:
        if not claims.templates(statefulset):
            return {}
        wanted = {identity.pod_name(statefulset, ordinal) for ordinal in plan.missing(statefulset, pods)}
        names = [name for pod in wanted.union(map(meta.name, pods)) for name in claims.claim_names(statefulset, pod)]
        found = {name: self.claims.store.get(ObjectKey(meta.namespace(statefulset), name)) for name in names}
        return {name: claim for name, claim in found.items() if claim is not None}

    async def _write_status(self, statefulset: JSONObject, wanted: JSONObject, session: Session) -> None:
        """Write the status where it changed; a set that vanished meanwhile needs none."""
        if not status.is_changed(statefulset, wanted):
            return
        version = meta.resource_version(statefulset)
        changed = statefulset | {"status": wanted}
        try:
            await session.perform(PutStatus(resource=STATEFULSETS, object=changed, resource_version=version))
        except ActionError as failure:
            if not isinstance(failure.__cause__, NotFoundError):
                raise

    async def _truncate_history(self, observed: plan.Observed, history: list[JSONObject], session: Session) -> None:
        live = {meta.name(observed.current), meta.name(observed.update), *map(identity.revision_of, observed.pods)}
        for revision in revisions.obsolete(observed.statefulset, history, live):
            await session.perform(
                Delete(
                    resource=CONTROLLER_REVISIONS,
                    key=meta.key(revision),
                    propagation="Background",
                    uid=meta.uid(revision),
                )
            )

    def _sets_of_pod(self, change: Change) -> Iterator[ObjectKey]:
        for pod in (change.old, change.new):
            if pod is None:
                continue
            yield from _owner_keys(pod)
            for parent in orphan_pod_index(pod):
                yield ObjectKey(*parent.split("/"))

    def _sets_of_lost_claim(self, change: Change) -> Iterator[ObjectKey]:
        """Name the sets that may wait for a claim to go, or have to make it anew."""
        if change.new is not None:
            return
        for statefulset in self.sets.store.list():
            if meta.namespace(statefulset) == meta.namespace(change.object) and claims.templates(statefulset):
                yield meta.key(statefulset)


def _owner_keys(obj: JSONObject) -> Iterator[ObjectKey]:
    reference = meta.controller_of(obj)
    kind = (reference.get("apiVersion"), reference.get("kind")) if reference else None
    if reference and kind == (STATEFULSETS.api_version, STATEFULSETS.kind):
        yield ObjectKey(meta.namespace(obj), reference.get("name", ""))


async def _is_alive(statefulset: JSONObject, session: Session) -> bool:
    """Read the live set: it may adopt only while it is still there, the same, and not on its way out."""
    try:
        live = await session.client.get(STATEFULSETS, meta.key(statefulset))
    except NotFoundError:
        return False
    return meta.uid(live) == meta.uid(statefulset) and not meta.is_deleting(live)


async def _update_revision(
    statefulset: JSONObject, history: list[JSONObject], session: Session
) -> tuple[JSONObject, int]:
    """Return the update revision, created or renumbered if need be, and the collision count.

    A set on its way out needs a revision for its status only: were it written, the garbage collector would chase it.
    """
    collisions = int(meta.status(statefulset).get("collisionCount") or 0)
    match revisions.choose_update(statefulset, history):
        case revisions.Keep(revision):
            return revision, collisions
        case _ if meta.is_deleting(statefulset):
            return revisions.build(statefulset, 0, collisions), collisions
        case revisions.Raise(revision, number):
            raised = guarded_patch(CONTROLLER_REVISIONS, revision, {"revision": number})
            return await session.patch(raised), collisions
        case revisions.New(number):
            return await _create_revision(statefulset, number, collisions, session)


async def _create_revision(
    statefulset: JSONObject, number: int, collisions: int, session: Session
) -> tuple[JSONObject, int]:
    while True:
        revision = revisions.build(statefulset, number, collisions)
        try:
            return await session.create(CONTROLLER_REVISIONS, revision), collisions
        except AlreadyExistsError:
            existing = await session.client.get(CONTROLLER_REVISIONS, meta.key(revision))
            if existing.get("data") == revision["data"]:
                return existing, collisions
            collisions += 1
