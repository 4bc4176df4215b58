"""Which objects the controllers keep in memory, and how they find them: informers, indexes, keys.

Everything that belongs to a LeaderWorkerSet carries its name as a label, so one selector bounds what is watched: memory
follows the pods of LeaderWorkerSets, not those of the cluster. Indexes file an object under the LeaderWorkerSet it
carries the name of, and under the group.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.pod.reconcile import is_leader

BY_LWS: Final = "leaderworkerset"
BY_GROUP: Final = "group"
LEADERS: Final = "leaders"

OF_STATEFULSETS: Final = "controller.kubernetes.io/hash"
"""A label of the ControllerRevisions that StatefulSets keep; they copy the labels of our pods, and are many."""


@dataclass(frozen=True, slots=True)
class Informers:
    """One informer per resource, shared by all controllers."""

    leaderworkersets: Informer
    statefulsets: Informer
    pods: Informer
    services: Informer
    revisions: Informer

    def all(self) -> tuple[Informer, ...]:
        """Return every one of them."""
        return (self.leaderworkersets, self.statefulsets, self.pods, self.services, self.revisions)


def build_informers(client: Client) -> Informers:
    """Build the informers; nothing is read before they run."""
    return Informers(
        leaderworkersets=Informer(client, LEADERWORKERSETS),
        statefulsets=Informer(client, ours(STATEFULSETS), indexes={BY_GROUP: group_values}).with_managed_fields(),
        pods=Informer(client, ours(PODS), indexes={BY_GROUP: group_values, LEADERS: leader_values}),
        services=Informer(client, ours(SERVICES)),
        revisions=Informer(
            client, ours(CONTROLLER_REVISIONS, f",!{OF_STATEFULSETS}"), indexes={BY_LWS: revision_values}
        ),
    )


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


def leader_values(pod: JSONObject) -> Iterable[str]:
    """File a leader pod under its LeaderWorkerSet."""
    return lws_values(pod) if is_leader(pod) else ()


def group_values(obj: JSONObject) -> Iterable[str]:
    """File a pod or worker StatefulSet under its group; the leader StatefulSet has none."""
    group_index = meta.labels(obj).get(labels.GROUP_INDEX)
    return () if group_index is None else (group_value(lws_key(obj), group_index),)
