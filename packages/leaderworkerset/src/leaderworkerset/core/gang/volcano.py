"""Supports Volcano with a PodGroup and a pod annotation (R-GANG-2 to -6, R-KQ-110 to 113).

Users set `schedulerName: volcano` themselves. There are two differences from the Go controller. A group with exclusive
placement has a minimum of one, because its workers wait for their leader. A group of an older revision keeps the size
and the requests of that revision.
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.core.gang import demand
from leaderworkerset.core.gang.provider import Provider, group_metadata, scheduler_name
from leaderworkerset.core.policies.gang import GangGroup, initial_pod_count
from leaderworkerset.core.policies.podedits import with_annotations

NAME: Final = "volcano"
POD_GROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
QUEUE: Final = "scheduling.volcano.sh/queue-name"
ANNOTATIONS: Final = "volcano.sh/"


def is_scheduled_by_volcano(pod: JSONObject) -> bool:
    """Return whether Volcano schedules the pod."""
    return scheduler_name(meta.spec(pod)) == NAME


def link(pod: JSONObject, group: str) -> JSONObject:
    """Return a copy of the pod that refers to the PodGroup of the group."""
    return with_annotations(pod, {GROUP_NAME: group})


def build(group: GangGroup, name: str) -> JSONObject:
    """Build the PodGroup (R-GANG-4)."""
    annotations = group.live.lws.metadata.annotations
    own = {key: value for key, value in annotations.items() if key.startswith(ANNOTATIONS)}
    return {
        **POD_GROUPS.type_meta,
        "metadata": group_metadata(group, name) | ({"annotations": own} if own else {}),
        "spec": {
            "minMember": initial_pod_count(group.revised),
            "minResources": demand.encode(demand.group_requests(group.revised)),
        }
        | ({"queue": annotations[QUEUE]} if annotations.get(QUEUE) else {}),
    }


VOLCANO: Final = Provider(
    name=NAME,
    group_object=POD_GROUPS,
    schedules=is_scheduled_by_volcano,
    has_pod_group=lambda _pod: False,
    link=link,
    build=build,
    is_named_by_revision=True,
)
