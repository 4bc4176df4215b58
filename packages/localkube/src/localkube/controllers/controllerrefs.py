"""Controller references: the objects of a workload, those it adopts and those it releases.

Mirrors `controller_ref_manager.go`. An object belongs to the owner in its owner reference; it is released when it no
longer matches (its labels, and its name if relevant), and adopted when it has no controller and matches. No object is
adopted while it or the owner is being deleted; before adopting, the live owner is read to make sure that it still has
the same UID.
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
    """Index an object without controller by its namespace."""
    return [] if meta.controller_of(obj) else [meta.namespace(obj)]


def owner_keys(obj: JSONObject | None, owners: Resource) -> Iterator[ObjectKey]:
    """Yield the key of an object's controller if the controller is of this resource."""
    owner = meta.controller_of(obj) if obj is not None else None
    if obj is not None and owner and (owner.get("apiVersion"), owner.get("kind")) == (owners.api_version, owners.kind):
        yield ObjectKey(meta.namespace(obj), owner["name"])


def affected(change: Change, owners: Informer) -> Iterator[ObjectKey]:
    """Yield the owners that a change affects: the old and the new controller, or owners that may adopt the object."""
    yield from owner_keys(change.old, owners.resource)
    yield from owner_keys(change.new, owners.resource)
    if change.new is not None and not meta.controller_of(change.new):
        for owner in owners.store.list():
            same = meta.namespace(owner) == meta.namespace(change.new)
            if same and selector_of(owner).matches(meta.labels(change.new)):
                yield meta.key(owner)


class Claimed(Struct, frozen=True):
    """The objects of an owner, those to release, and those to adopt."""

    members: tuple[JSONObject, ...]
    released: tuple[JSONObject, ...]
    adopted: tuple[JSONObject, ...]


def selector_of(owner: JSONObject) -> LabelSelector:
    """Return the owner's selector."""
    return selectors.from_object(meta.spec(owner).get("selector"))


def claim(
    owner: JSONObject,
    owned: Sequence[JSONObject],
    orphans: Iterable[JSONObject],
    fits: Callable[[JSONObject], bool] = lambda _: True,
) -> Claimed:
    """Sort objects: `owned` have the owner as their controller, `orphans` have none.

    `fits` is a condition besides labels.
    """
    selector = selector_of(owner)

    def matches(obj: JSONObject) -> bool:
        return fits(obj) and selector.matches(meta.labels(obj))

    fitting = {meta.name(obj) for obj in owned if matches(obj)}
    leaving = meta.is_deleting(owner)
    return Claimed(
        members=tuple(obj for obj in owned if meta.name(obj) in fitting),
        released=() if leaving else tuple(obj for obj in owned if meta.name(obj) not in fitting),
        adopted=() if leaving else tuple(obj for obj in orphans if matches(obj) and not meta.is_deleting(obj)),
    )


async def is_alive(client: Client, resource: Resource, owner: JSONObject) -> bool:
    """Read the live owner: it may adopt only if it exists with the same UID and is not being deleted."""
    try:
        live = await client.get(resource, meta.key(owner))
    except NotFoundError:
        return False
    return meta.uid(live) == meta.uid(owner) and not meta.is_deleting(live)


def adopt(resource: Resource, owner: JSONObject, orphan: JSONObject) -> Patch:
    """Make the owner the controller of an object."""
    owners = [*_owners(orphan), meta.controller_reference(owner)]
    return guarded_patch(resource, orphan, {"metadata": {"ownerReferences": owners}})


def release(resource: Resource, owner: JSONObject, obj: JSONObject) -> Patch:
    """Remove the owner from the owners of an object."""
    owners = [reference for reference in _owners(obj) if reference.get("uid") != meta.uid(owner)]
    return guarded_patch(resource, obj, {"metadata": {"ownerReferences": owners}})


async def plan_owners(
    client: Client, owners: Resource, owner: JSONObject, members: Resource, claimed: Claimed
) -> Plan | None:
    """Return the plan that releases and adopts objects, None if there is nothing to change."""
    if not (claimed.released or claimed.adopted):
        return None
    released = [release(members, owner, obj) for obj in claimed.released]
    may_adopt = bool(claimed.adopted) and await is_alive(client, owners, owner)
    return Plan((*released, *(adopt(members, owner, obj) for obj in claimed.adopted if may_adopt)))


def _owners(obj: JSONObject) -> list[JSONObject]:
    return meta.metadata(obj).get("ownerReferences") or []
