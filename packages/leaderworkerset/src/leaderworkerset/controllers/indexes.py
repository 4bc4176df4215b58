"""Declares the caches, indexes and keys for the LeaderWorkerSet controllers.

Every object of a LeaderWorkerSet has its name as a label, so one selector limits the watched objects. Memory usage
depends on the pods of LeaderWorkerSets, not on all pods in the cluster. Objects are indexed by the LeaderWorkerSet that
their label names, and by the group.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kuberuntime.cache.cache import Store
from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta, resources
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.groupname import is_leader
from leaderworkerset.api.resources import LEADERWORKERSETS, OF_STATEFULSETS
from leaderworkerset.controllers import cachedfields
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.core.policies.workloadnames import linked_pod_group
from leaderworkerset.core.restarts.retention import is_retained

BY_LWS: Final = "leaderworkerset"
BY_GROUP: Final = "group"
LEADERS: Final = "leaders"
RECORDS: Final = "records"
POD_GROUP: Final = "pod group"
BY_NODE: Final = "node"
KEPT: Final = "kept"


def labeled_selection(resource: Resource, further: str = "") -> Selection:
    """Select objects with a LeaderWorkerSet name label and additional label requirements."""
    return Selection(resource, label_selector=labels.NAME + further)


def group_value(lws: ObjectKey, group_index: str) -> str:
    """Return the index key of a group."""
    return f"{lws}/{group_index}"


def lws_values(obj: JSONObject) -> Iterable[str]:
    """Index an object by its LeaderWorkerSet."""
    return (str(groupname.lws_key(obj)),)


def revision_values(revision: JSONObject) -> Iterable[str]:
    """Index a revision by the LeaderWorkerSet in its label, unless it has a different owner."""
    owner = meta.controller_of(revision)
    is_own = owner is None or owner["kind"] == LEADERWORKERSETS.kind
    return lws_values(revision) if is_own and labels.TEMPLATE_REVISION_HASH in meta.labels(revision) else ()


def record_values(revision: JSONObject) -> Iterable[str]:
    """Index a recreation record by its LeaderWorkerSet."""
    own = meta.annotations(revision)
    return lws_values(revision) if labels.RECREATIONS in own or labels.FORMER_NODES in own else ()


def is_leader_changed(change: Change) -> bool:
    """Return whether a recreation record now refers to a different leader."""
    versions = [{} if record is None else meta.annotations(record) for record in (change.old, change.new)]
    old, new = (annotations.get(labels.RECREATED_LEADER, "") for annotations in versions)
    return old != new


def is_own_leader(pod: JSONObject) -> bool:
    """Return whether a pod is a leader without an unrelated controller.

    Other pods are neither counted nor deleted.
    """
    return is_leader(pod) and not groupname.has_foreign_controller(pod)


def leader_values(pod: JSONObject) -> Iterable[str]:
    """Index a leader pod by its LeaderWorkerSet. Pods of other controllers are never deleted."""
    return lws_values(pod) if is_own_leader(pod) else ()


def retained_pod_values(pod: JSONObject) -> Iterable[str]:
    """Index a pod with the finalizer for exhausted groups by its LeaderWorkerSet."""
    return lws_values(pod) if is_retained(pod) else ()


def group_values(obj: JSONObject) -> Iterable[str]:
    """Index a pod or worker StatefulSet by its group. The leader StatefulSet has no group."""
    group_index = meta.labels(obj).get(labels.GROUP_INDEX)
    return () if group_index is None else (group_value(groupname.lws_key(obj), group_index),)


def find_workers(leader: JSONObject, statefulsets: Store) -> JSONObject | None:
    """Return the worker StatefulSet of a leader. Other versions use a different name for random keys."""
    candidate = statefulsets.get(ObjectKey(meta.namespace(leader), groupname.hostname(leader)))
    own = groupname.find_workers(leader, () if candidate is None else (candidate,))
    if own is not None or not groupname.has_random_key(leader):
        return own
    return groupname.find_workers(
        leader, statefulsets.by_index(BY_GROUP, group_value(groupname.lws_key(leader), groupname.group_label(leader)))
    )


def pod_group_values(pod: JSONObject) -> Iterable[str]:
    """Index a pod by its Kubernetes PodGroup."""
    name = linked_pod_group(pod)
    return (str(ObjectKey(meta.namespace(pod), name)),) if name else ()


def node_values(pod: JSONObject) -> Iterable[str]:
    """Index a pod by its node."""
    node = meta.spec(pod).get("nodeName")
    return (node,) if node else ()


def keys_of_owned(kind: Resource, change: Change) -> Iterable[ObjectKey]:
    """Map an object to the object of this kind that controls it."""
    owner = meta.controller_of(change.object)
    if owner is None or owner["kind"] != kind.kind:
        return ()
    return (ObjectKey(meta.namespace(change.object), owner["name"]),)


def keys_of_named(kind: Resource, change: Change) -> Iterable[ObjectKey]:
    """Map an object to its controller. A deleted object is also mapped to the object that may need its name."""
    return {*keys_of_owned(kind, change), *([meta.key(change.object)] if change.new is None else [])}


def no_keys(_change: Change) -> Iterable[ObjectKey]:
    """Return no keys, for objects whose changes do not require a reconciliation."""
    return ()


LEADERWORKERSET_CACHE: Final = Cache(Selection(LEADERWORKERSETS), keep=cachedfields.leaderworkerset)
STATEFULSET_CACHE: Final = Cache(
    labeled_selection(resources.STATEFULSETS), {BY_GROUP: group_values}, keep=cachedfields.statefulset_fields
)
CLOSABLE_NODE_CACHE: Final = Cache(
    Selection(resources.NODES), keep=cachedfields.same_fields(cachedfields.CLOSABLE_NODE)
)
POD_CACHE: Final = Cache(
    labeled_selection(resources.PODS),
    {
        BY_GROUP: group_values,
        LEADERS: leader_values,
        KEPT: retained_pod_values,
        POD_GROUP: pod_group_values,
    },
    keep=cachedfields.same_fields(cachedfields.POD),
)
SERVICE_CACHE: Final = Cache(labeled_selection(resources.SERVICES), keep=cachedfields.same_fields(cachedfields.SERVICE))
REVISION_CACHE: Final = Cache(
    labeled_selection(resources.CONTROLLER_REVISIONS, f",!{OF_STATEFULSETS}"),
    {BY_LWS: revision_values, RECORDS: record_values},
    keep=cachedfields.same_fields(cachedfields.REVISION),
)
DEPLOYMENT_CACHE: Final = Cache(
    labeled_selection(resources.DEPLOYMENTS), keep=cachedfields.same_fields(cachedfields.DEPLOYMENT)
)

CACHES: Final = (LEADERWORKERSET_CACHE, STATEFULSET_CACHE, POD_CACHE, SERVICE_CACHE, REVISION_CACHE)
"""The caches for the LeaderWorkerSet and pod controllers. Each controller uses all of them."""


class Informers(Struct, frozen=True):
    """The open caches for LeaderWorkerSets, by name."""

    leaderworkersets: Informer
    statefulsets: Informer
    pods: Informer
    services: Informer
    revisions: Informer


def informers_of(caches: Caches) -> Informers:
    """Select the LeaderWorkerSet caches from the open caches."""
    return Informers(*(caches[cache] for cache in CACHES))
