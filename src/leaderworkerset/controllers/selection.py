"""Which objects the controllers of LeaderWorkerSets keep in memory, and how they find them: caches, indexes, keys.

Everything that belongs to a LeaderWorkerSet carries its name as a label, so one selector bounds what is watched: memory
follows the pods of LeaderWorkerSets, not those of the cluster. Indexes file an object under the LeaderWorkerSet it
carries the name of, and under the group.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers import kept
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.core.pod.reconcile import is_leader

BY_LWS: Final = "leaderworkerset"
BY_GROUP: Final = "group"
LEADERS: Final = "leaders"
RECORDS: Final = "records"

OF_STATEFULSETS: Final = "controller.kubernetes.io/hash"
"""A label of the ControllerRevisions that StatefulSets keep; they copy the labels of our pods, and are many."""


def ours(resource: Resource, further: str = "") -> Selection:
    """Select what carries the name of a LeaderWorkerSet, and fulfils further requirements on labels."""
    return Selection(resource, label_selector=labels.NAME + further)


def lws_key(obj: JSONObject) -> ObjectKey:
    """Return the key of the LeaderWorkerSet whose name the object carries."""
    return ObjectKey(meta.namespace(obj), meta.labels(obj).get(labels.NAME, ""))


def group_value(lws: ObjectKey, group_index: str) -> str:
    """Return the index value of a group."""
    return f"{lws}/{group_index}"


def lws_values(obj: JSONObject) -> Iterable[str]:
    """File an object under its LeaderWorkerSet."""
    return (str(lws_key(obj)),)


def revision_values(revision: JSONObject) -> Iterable[str]:
    """File a revision of a LeaderWorkerSet, or of nobody, under the LeaderWorkerSet it is labeled with."""
    owner = meta.controller_of(revision)
    is_own = owner is None or owner["kind"] == LEADERWORKERSETS.kind
    return lws_values(revision) if is_own and labels.TEMPLATE_REVISION_HASH in meta.labels(revision) else ()


def record_values(revision: JSONObject) -> Iterable[str]:
    """File the record of a group's recreations under its LeaderWorkerSet."""
    return lws_values(revision) if labels.RECREATIONS in meta.annotations(revision) else ()


def leader_values(pod: JSONObject) -> Iterable[str]:
    """File a leader pod under its LeaderWorkerSet."""
    return lws_values(pod) if is_leader(pod) else ()


def group_values(obj: JSONObject) -> Iterable[str]:
    """File a pod or worker StatefulSet under its group; the leader StatefulSet has none."""
    group_index = meta.labels(obj).get(labels.GROUP_INDEX)
    return () if group_index is None else (group_value(lws_key(obj), group_index),)


def keys_of_nothing(_change: Change) -> Iterable[ObjectKey]:
    """Map to no key: what is read, and waited for after writes, but changes no decision by itself."""
    return ()


LEADERWORKERSET_CACHE: Final = Cache(Selection(LEADERWORKERSETS))
STATEFULSET_CACHE: Final = Cache(ours(STATEFULSETS), {BY_GROUP: group_values}, keep=kept.statefulset)
POD_CACHE: Final = Cache(ours(PODS), {BY_GROUP: group_values, LEADERS: leader_values}, keep=kept.pod)
SERVICE_CACHE: Final = Cache(ours(SERVICES), keep=kept.service)
REVISION_CACHE: Final = Cache(
    ours(CONTROLLER_REVISIONS, f",!{OF_STATEFULSETS}"),
    {BY_LWS: revision_values, RECORDS: record_values},
    keep=kept.revision,
)

CACHES: Final = (LEADERWORKERSET_CACHE, STATEFULSET_CACHE, POD_CACHE, SERVICE_CACHE, REVISION_CACHE)
"""What the controllers of LeaderWorkerSets and of their pods read; both read all of them."""


@dataclass(frozen=True, slots=True)
class Informers:
    """The open caches of LeaderWorkerSets, by name."""

    leaderworkersets: Informer
    statefulsets: Informer
    pods: Informer
    services: Informer
    revisions: Informer


def informers_of(caches: Caches) -> Informers:
    """Return the caches of LeaderWorkerSets among the open ones."""
    return Informers(*(caches[cache] for cache in CACHES))
