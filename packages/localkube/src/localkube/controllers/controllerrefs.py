"""Evaluates controller references, to determine the objects that a workload owns, adopts and releases.

Mirrors `controller_ref_manager.go`. An object belongs to the owner in its owner reference. It is released when its
labels (or its name, if relevant) no longer match, and adopted when it has no controller and matches. Objects are not
adopted while they or the owner are being deleted. Before an adoption, the live owner is read to verify that it still
has the same UID.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta, selectors
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.objects.selectors import LabelSelector
from kuberuntime.plan import Patch, Plan, guarded_patch

BY_CONTROLLER: Final = "controller"
ORPHANS: Final = "orphans of a namespace"


def controller_index(obj: JSONObject) -> Iterable[str]:
    """Index an object by the UID of its controller."""
    reference = meta.controller_of(obj)
    return [reference.get("uid", "")] if reference else []


def orphan_index(obj: JSONObject) -> Iterable[str]:
    """Index an object without a controller by its namespace."""
    return [] if meta.controller_of(obj) else [meta.namespace(obj)]


def owner_keys(obj: JSONObject | None, owners: Resource) -> Iterator[ObjectKey]:
    """Yield the key of an object's controller if the controller has this resource."""
    owner = meta.controller_of(obj) if obj is not None else None
    if obj is not None and owner and (owner.get("apiVersion"), owner.get("kind")) == (owners.api_version, owners.kind):
        yield ObjectKey(meta.namespace(obj), owner["name"])


def affected_owners(change: Change, owners: Informer) -> Iterator[ObjectKey]:
    """Yield the owners that a change affects: the old and new controller, or owners that can adopt the object."""
    yield from owner_keys(change.old, owners.resource)
    yield from owner_keys(change.new, owners.resource)
    if change.new is not None and not meta.controller_of(change.new):
        for owner in owners.store.list():
            same = meta.namespace(owner) == meta.namespace(change.new)
            if same and owner_selector(owner).matches(meta.labels(change.new)):
                yield meta.key(owner)


class ClaimedObjects(Struct, frozen=True):
    """The objects of an owner, the objects to release, and the objects to adopt."""

    members: tuple[JSONObject, ...]
    released: tuple[JSONObject, ...]
    adopted: tuple[JSONObject, ...]


def owner_selector(owner: JSONObject) -> LabelSelector:
    """Return the owner's selector."""
    return selectors.from_object(meta.spec(owner).get("selector"))


def claim(
    owner: JSONObject,
    owned: Sequence[JSONObject],
    orphans: Iterable[JSONObject],
    fits: Callable[[JSONObject], bool] = lambda _: True,
) -> ClaimedObjects:
    """Classify objects. The owner controls `owned` objects, and `orphans` do not have a controller.

    `fits` is a condition in addition to labels.
    """
    selector = owner_selector(owner)

    def matches(obj: JSONObject) -> bool:
        return fits(obj) and selector.matches(meta.labels(obj))

    fitting = {meta.name(obj) for obj in owned if matches(obj)}
    leaving = meta.is_deleting(owner)
    return ClaimedObjects(
        members=tuple(obj for obj in owned if meta.name(obj) in fitting),
        released=() if leaving else tuple(obj for obj in owned if meta.name(obj) not in fitting),
        adopted=() if leaving else tuple(obj for obj in orphans if matches(obj) and not meta.is_deleting(obj)),
    )


async def is_alive(client: Client, resource: Resource, owner: JSONObject) -> bool:
    """Return whether the live owner has the same UID and is not being deleted, so that it can adopt objects."""
    try:
        live = await client.get(resource, meta.key(owner))
    except NotFoundError:
        return False
    return meta.uid(live) == meta.uid(owner) and not meta.is_deleting(live)


def adopt(resource: Resource, owner: JSONObject, orphan: JSONObject) -> Patch:
    """Set the owner as the controller of an object."""
    owners = [*meta.owners(orphan), meta.controller_reference(owner)]
    return guarded_patch(resource, orphan, {"metadata": {"ownerReferences": owners}})


def release(resource: Resource, owner: JSONObject, obj: JSONObject) -> Patch:
    """Remove the owner from the owners of an object."""
    owners = [reference for reference in meta.owners(obj) if reference.get("uid") != meta.uid(owner)]
    return guarded_patch(resource, obj, {"metadata": {"ownerReferences": owners}})


async def plan_owners(
    client: Client, owners: Resource, owner: JSONObject, members: Resource, claimed: ClaimedObjects
) -> Plan | None:
    """Return the plan that releases and adopts objects, or None if it has no actions."""
    if not (claimed.released or claimed.adopted):
        return None
    released = [release(members, owner, obj) for obj in claimed.released]
    may_adopt = bool(claimed.adopted) and await is_alive(client, owners, owner)
    return Plan((*released, *(adopt(members, owner, obj) for obj in claimed.adopted if may_adopt)))
