"""Supports the coscheduling plugin of scheduler-plugins with a PodGroup and a pod label (R-KQ-120, 121).

Its scheduler requires that the pods of a group have the same priority and `schedulerName`. Users set both themselves.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.gang import demand
from leaderworkerset.core.gang.provider import Provider, group_metadata, templates
from leaderworkerset.core.policies.gang import GangGroup, initial_pod_count
from leaderworkerset.core.policies.podedits import with_labels

NAME: Final = "coscheduling"
POD_GROUPS: Final = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"

ALIKE: Final = ("schedulerName", "priorityClassName", "priority")
"""The fields that must be identical in all pods of a group for the plugin."""


def errors(lws: LeaderWorkerSet) -> Sequence[FieldError]:
    """Return an error if the leader and worker templates have different scheduling fields."""
    return differing_field_errors(lws, ALIKE, NAME)


def differing_field_errors(lws: LeaderWorkerSet, fields: Sequence[str], scheduler: str) -> Sequence[FieldError]:
    """Return an error for each field that differs between leader and worker templates."""
    (path, leader), *others = templates(lws)
    return [
        invalid(
            f"{path}.{field}",
            leader.get(field),
            f"must equal the value of the workers with {scheduler} gang scheduling",
        )
        for field in fields
        if any((leader.get(field) or None) != (worker.get(field) or None) for _, worker in others)
    ]


def has_pod_group(pod: JSONObject) -> bool:
    """Return whether the user has linked the pod to a PodGroup."""
    return POD_GROUP in meta.labels(pod)


def link(pod: JSONObject, group: str) -> JSONObject:
    """Return a copy of the pod that refers to the PodGroup of the group."""
    return with_labels(pod, {POD_GROUP: group})


def build(group: GangGroup, name: str) -> JSONObject:
    """Build the PodGroup. It requests resources only if all pods start at the same time.

    Otherwise the first pod would wait for the resources of all pods.
    """
    minimum = initial_pod_count(group.revised)
    group_resources = demand.encode(demand.group_requests(group.revised)) if minimum == group.revised.size else {}
    return {
        **POD_GROUPS.type_meta,
        "metadata": group_metadata(group, name),
        "spec": {"minMember": minimum} | ({"minResources": group_resources} if group_resources else {}),
    }


COSCHEDULING: Final = Provider(
    name=NAME,
    group_object=POD_GROUPS,
    schedules=lambda _pod: True,  # the API does not show which scheduler runs the plugin
    has_pod_group=has_pod_group,
    link=link,
    build=build,
    errors=errors,
)
