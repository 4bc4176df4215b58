"""Controller references: the pods and revisions of a StatefulSet, those it adopts and those it releases.

Mirrors `controller_ref_manager.go`. A pod belongs to the set in its owner reference; it is released when its name or
labels no longer match, and adopted when it has no controller and both match. No object is adopted while it or the set
is being deleted; before adopting, the live set is read to make sure that it still has the same UID.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kuberuntime.objects import meta, selectors
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.objects.selectors import LabelSelector
from kuberuntime.plan import Patch, guarded_patch
from localkube.controllers.statefulset import identity


@dataclass(frozen=True, slots=True)
class Claimed:
    """The pods of a set, those to release, and those to adopt."""

    members: tuple[JSONObject, ...]
    released: tuple[JSONObject, ...]
    adopted: tuple[JSONObject, ...]


def selector_of(statefulset: JSONObject) -> LabelSelector:
    """Return the set's selector."""
    return selectors.from_object(meta.spec(statefulset).get("selector"))


def claim(statefulset: JSONObject, owned: Sequence[JSONObject], orphans: Iterable[JSONObject]) -> Claimed:
    """Sort pods: `owned` have the set as their controller, `orphans` have none."""
    selector = selector_of(statefulset)
    fitting = {
        meta.name(pod) for pod in owned if identity.is_member(statefulset, pod) and selector.matches(meta.labels(pod))
    }
    leaving = meta.is_deleting(statefulset)
    return Claimed(
        members=tuple(pod for pod in owned if meta.name(pod) in fitting),
        released=() if leaving else tuple(pod for pod in owned if meta.name(pod) not in fitting),
        adopted=() if leaving else tuple(pod for pod in orphans if _is_adoptable(statefulset, selector, pod)),
    )


def adopt(resource: Resource, statefulset: JSONObject, orphan: JSONObject) -> Patch:
    """Make the set the controller of an object."""
    owners = [*_owners(orphan), meta.controller_reference(statefulset)]
    return guarded_patch(resource, orphan, {"metadata": {"ownerReferences": owners}})


def release(resource: Resource, statefulset: JSONObject, obj: JSONObject) -> Patch:
    """Remove the set from the owners of an object."""
    owners = [owner for owner in _owners(obj) if owner.get("uid") != meta.uid(statefulset)]
    return guarded_patch(resource, obj, {"metadata": {"ownerReferences": owners}})


def _is_adoptable(statefulset: JSONObject, selector: LabelSelector, pod: JSONObject) -> bool:
    fits = identity.is_member(statefulset, pod) and selector.matches(meta.labels(pod))
    return fits and not meta.is_deleting(pod)


def _owners(obj: JSONObject) -> list[JSONObject]:
    return meta.metadata(obj).get("ownerReferences") or []
