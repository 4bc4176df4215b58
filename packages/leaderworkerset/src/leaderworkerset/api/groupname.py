"""Computes the names of a group, including its label, its leader pod, its workers and its Services.

| identity | label `group-index` | leader pod | host, worker StatefulSet, own service |
|---|---|---|---|
| `Ordinal` | the index | `<set>-<index>` | as the leader pod |
| `Hash` | a random key | a name of the ReplicaSet's | `<set>-<first characters of the key>` |

Input: a pod after admission. Objects of a group are found by one of these names, never by an index.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, TypeAlias

from kuberuntime.objects import decimals, meta, ordinals
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import labels
from leaderworkerset.api.policytypes import WITH_RANDOM_KEYS

GroupName: TypeAlias = int | str
"""The name of a group, which is its index, or the part of its random key that is used in host names."""

HOST_CHARACTERS: Final = 8
"""The number of random key characters in host names."""

KEY_CHARACTERS: Final = 40
"""The length of a random key, which exceeds the length of all indexes."""

KEY: Final = re.compile(r"[0-9a-f]{8,40}")
"""The pattern of a random key, or of its prefix in the group name. All indexes are shorter."""

GROUP_LABELS: Final = (labels.GROUP_INDEX, labels.GROUP_KEY)
"""The labels of the pods in a group, in addition to the LeaderWorkerSet name label."""


def lws_key(obj: JSONObject) -> ObjectKey:
    """Return the key of the LeaderWorkerSet in the object's label, with an empty name if the label is absent."""
    return ObjectKey(meta.namespace(obj), meta.labels(obj).get(labels.NAME, ""))


def group_label(obj: JSONObject) -> str:
    """Return the group label of a pod or another object of the group, or an empty string if it is absent."""
    return meta.labels(obj).get(labels.GROUP_INDEX, "")


def revision_key(obj: JSONObject) -> str:
    """Return the revision key of an object or a ControllerRevision, or an empty string if it is absent."""
    return meta.labels(obj).get(labels.TEMPLATE_REVISION_HASH, "")


def has_random_key(pod: JSONObject) -> bool:
    """Return whether the group of the pod has a random key."""
    return meta.annotations(pod).get(labels.GROUP_IDENTITY) in WITH_RANDOM_KEYS


def uses_random_keys(lws: JSONObject) -> bool:
    """Return whether the groups of a LeaderWorkerSet have random keys."""
    return meta.spec(lws).get("groupIdentity") in WITH_RANDOM_KEYS


def is_exhausted(leader: JSONObject) -> bool:
    """Return whether the leader's group has exhausted its restarts. Its pods are then not deleted (N-RB-4)."""
    return meta.annotations(leader).get(labels.GROUP_RESTART_BUDGET_EXHAUSTED) == "true"


class GroupEnd(StrEnum):
    """The result of a group that runs to completion. Its leader exited with code 0, or its deadline passed before."""

    COMPLETE = "Complete"
    LATE = "DeadlineExceeded"


def group_result(leader: JSONObject) -> GroupEnd | None:
    """Return the result of the leader's group, or None if it has not completed."""
    text = meta.annotations(leader).get(labels.GROUP_ENDED, "")
    return GroupEnd(text) if text and text in tuple(GroupEnd) else None


def is_finished(leader: JSONObject) -> bool:
    """Return whether the leader's group is finished, because it exhausted its restarts or completed.

    The leader of such a group is kept.
    """
    return is_exhausted(leader) or group_result(leader) is not None


def hostname(leader: JSONObject) -> str:
    """Return a leader's host name, which is part of the names of its worker StatefulSet, workers and Service."""
    return str(meta.spec(leader).get("hostname") or meta.name(leader))


def subdomain(leader: JSONObject) -> str:
    """Return a leader's subdomain, or an empty string if it is not set."""
    return str(meta.spec(leader).get("subdomain") or "")


def is_leader(pod: JSONObject) -> bool:
    """Return whether the pod is a leader."""
    return meta.labels(pod).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX


def has_foreign_controller(pod: JSONObject) -> bool:
    """Return whether a pod with LeaderWorkerSet labels has a controller other than a LeaderWorkerSet workload.

    Leaders belong to the StatefulSet with the name of the LeaderWorkerSet, or to a ReplicaSet of its Deployment.
    """
    controller = meta.controller_of(pod)
    if controller is None or controller["kind"] == "ReplicaSet":
        return False
    is_other = is_leader(pod) and controller["name"] != meta.labels(pod).get(labels.NAME)
    return controller["kind"] != "StatefulSet" or is_other


def rank(pod: JSONObject) -> int | None:
    """Return the rank of a pod based on its label, or None if the label is not a number."""
    return decimals.natural(meta.labels(pod).get(labels.WORKER_INDEX, ""))


def group_and_rank(pod: JSONObject) -> tuple[GroupName, int] | None:
    """Return the group and rank in the labels of a pod.

    Return None if they are missing, or if the controller is unrelated.
    """
    if has_foreign_controller(pod):
        return None
    group, number = parse_group_name(group_label(pod)), rank(pod)
    return None if group is None or number is None else (group, number)


def parse_group_name(text: str) -> GroupName | None:
    """Return the name of the group with this label, or None if the label is invalid.

    >>> parse_group_name("12"), parse_group_name("95e88034e460983f51a9952fe128729fbc0663b5"), parse_group_name("95e88034"), parse_group_name("a")
    (12, '95e88034', '95e88034', None)
    """
    if len(text) >= HOST_CHARACTERS and KEY.fullmatch(text):
        return text[:HOST_CHARACTERS]
    return decimals.natural(text)


def leader_name(pod: JSONObject) -> str:
    """Return the leader name in a pod, or the name of the pod itself if it does not specify a leader."""
    if (meta.labels(pod).get(labels.WORKER_INDEX) or labels.LEADER_WORKER_INDEX) == labels.LEADER_WORKER_INDEX:
        return meta.name(pod)
    ordinal = ordinals.split(meta.name(pod))
    leader_name = meta.name(pod) if ordinal is None else ordinal.parent
    return meta.annotations(pod).get(labels.LEADER_NAME, leader_name) if has_random_key(pod) else leader_name


def find_workers(leader: JSONObject, statefulsets: Iterable[JSONObject]) -> JSONObject | None:
    """Return the StatefulSet with the name of the leader's workers, or a StatefulSet controlled by the leader.

    Other versions of the controller name it after the leader pod (N-HASH-20). A StatefulSet with a different owner is
    not returned. A StatefulSet without a controller must select the pods of the group, for example if it was orphaned
    when the leader was deleted.
    """
    name, own = hostname(leader), group_labels(leader)
    candidates = (obj for obj in statefulsets if meta.name(obj) == name or meta.is_controlled(obj, leader))
    return next((obj for obj in candidates if not is_foreign(obj, leader, own)), None)


def group_labels(leader: JSONObject) -> dict[str, str]:
    """Return the pod selector labels of a leader's worker StatefulSet (R-WSTS-3)."""
    copied = {key: value for key in GROUP_LABELS if (value := meta.labels(leader).get(key)) is not None}
    return {labels.NAME: meta.labels(leader).get(labels.NAME, "")} | copied


def leader_labels(name: str) -> dict[str, str]:
    """Return the pod selector labels of the leader StatefulSet or Deployment (R-LSTS-2)."""
    return {labels.NAME: name, labels.WORKER_INDEX: labels.LEADER_WORKER_INDEX}


def is_foreign_leader_workload(workload: JSONObject, obj: JSONObject) -> bool:
    """Return whether a StatefulSet or Deployment with the name of a LeaderWorkerSet belongs to a different owner."""
    return is_foreign(workload, obj, leader_labels(meta.name(obj)))


def is_foreign(workload: JSONObject, owner: JSONObject, selected: dict[str, str]) -> bool:
    """Return whether a workload with this name belongs to a different owner, and cannot be adopted by `owner`.

    An orphan has no controller, and selects the pods with the labels `selected`. An object that belongs to a deleted
    owner of the same name is not foreign, because it is deleted soon.
    """
    if meta.controller_of(workload) is not None:
        return meta.foreign_controller(workload, owner) is not None
    return bool(meta.spec(workload).get("selector") != {"matchLabels": selected})
