"""Runs the volume binder, which binds claims (`claims.py`), and removes volumes whose claims were deleted."""

import asyncio
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.controller.controller import Watch
from kuberuntime.errors import AlreadyExistsError, NotFoundError
from kuberuntime.objects import meta, podclaims, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kuberuntime.plan import Actions, Delete, Patch, Plan
from localkube.controllers.volumes import claims as rules

BY_CLAIM: Final = "claim"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def pod_claim_index(pod: JSONObject) -> Iterable[str]:
    """Index a pod that has not terminated by its mounted claims."""
    if podstate.has_ended(pod):
        return
    for name in podclaims.claims_by_volume(pod).values():
        yield f"{meta.namespace(pod)}/{name}"


class VolumeBinder(Struct, frozen=True, kw_only=True):
    """Reconciles claims and their volumes. `pods` has the index above."""

    claims: Informer
    volumes: Informer
    classes: Informer
    pods: Informer
    client: Client
    root: Path

    def watches(self) -> tuple[Watch, ...]:
        """Return the watches, with the claims that a change affects."""
        return (
            Watch(self.claims, lambda change: [meta.key(change.object)]),
            Watch(self.volumes, self._claims_of_volume),
            Watch(self.classes, self._pending_claims),
            Watch(self.pods, self._claims_of_lost_pod),
        )

    async def plan(self, key: ObjectKey) -> Plan:
        """Reclaim the volumes of previous claims with the same name, and then bind the claim."""
        claim = self.claims.store.get(key)
        actions: Actions = ()
        is_mounted = bool(self.pods.store.by_index(BY_CLAIM, str(key)))
        for volume in self.volumes.store.list():
            if _claim_key(volume) == key and rules.is_abandoned(volume, claim) and not is_mounted:
                actions += await self._reclaim(volume, key)
        return Plan(actions if claim is None else actions + rules.plan(self._observe(claim)))

    def _observe(self, claim: JSONObject) -> rules.ObservedClaim:
        return rules.ObservedClaim(
            claim=claim,
            volumes={meta.name(volume): volume for volume in self.volumes.store.list()},
            classes={meta.name(storage_class): storage_class for storage_class in self.classes.store.list()},
            root=self.root,
        )

    async def _reclaim(self, volume: JSONObject, key: ObjectKey) -> Actions:
        """Release or delete a volume whose claim no longer exists. Its directory is deleted before the object."""
        claim_uid = (meta.spec(volume).get("claimRef") or {}).get("uid")
        with suppress(NotFoundError):
            if meta.uid(await self.client.get(PERSISTENT_VOLUME_CLAIMS, key)) == claim_uid:
                return ()
        if meta.spec(volume).get("persistentVolumeReclaimPolicy") != "Delete":
            return _release(volume)
        directory = rules.volume_directory(volume, self.root)
        if directory is not None:
            await asyncio.to_thread(_remove, directory)
        uid = meta.uid(volume)
        return (Delete(resource=PERSISTENT_VOLUMES, key=meta.key(volume), propagation="Background", uid=uid),)

    def _claims_of_volume(self, change: Change) -> Iterator[ObjectKey]:
        """Yield the claim of a volume, or all pending claims if the volume has no claim."""
        key = _claim_key(change.object)
        if key is not None:
            yield key
        else:
            yield from self._pending_claims(change)

    def _pending_claims(self, _: Change) -> Iterator[ObjectKey]:
        for claim in self.claims.store.list():
            if meta.status(claim).get("phase") != "Bound":
                yield meta.key(claim)

    def _claims_of_lost_pod(self, change: Change) -> Iterator[ObjectKey]:
        """Yield claims that a pod no longer mounts, because their provisioned volumes might wait for it."""
        keys = set(pod_claim_index(change.old or {})) - set(pod_claim_index(change.new or {}))
        for key in keys:
            yield ObjectKey(*key.split("/"))


async def ensure_default_class(client: Client) -> None:
    """Create the default storage class, unless a class with this name exists."""
    with suppress(AlreadyExistsError):
        await client.create(STORAGE_CLASSES, rules.DEFAULT_CLASS)


def _release(volume: JSONObject) -> Actions:
    if meta.status(volume).get("phase") == "Released":
        return ()
    change = {"status": {"phase": "Released"}}
    return (Patch(resource=PERSISTENT_VOLUMES, key=meta.key(volume), patch=change, subresource="status"),)


def _claim_key(volume: JSONObject) -> ObjectKey | None:
    reference = meta.spec(volume).get("claimRef") or {}
    return ObjectKey(reference["namespace"], reference["name"]) if reference.get("name") else None


def _remove(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("failed to remove a volume directory", directory=str(directory), error=str(error))
