"""The names of a group: its label, its leader pod, and the name of its workers and services.

| identity | label `group-index` | leader pod | host, worker StatefulSet, own service |
|---|---|---|---|
| `Ordinal` | the index | `<set>-<index>` | as the leader pod |
| `Hash` | a random key | a name of the ReplicaSet's | `<set>-<first characters of the key>` |

In: a pod after admission. Objects of a group are found by one of these names, never by an index.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, TypeAlias

from kuberuntime.objects import decimals, meta, ordinals
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.policytypes import WITH_RANDOM_KEYS

GroupName: TypeAlias = int | str
"""The name of a group: its index, or the characters of its random key that are part of its host names."""

HOST_CHARACTERS: Final = 8
"""The characters of a random key that are part of host names."""

KEY_CHARACTERS: Final = 40
"""The characters of a random key, more than any index has."""

KEY: Final = re.compile(r"[0-9a-f]{8,40}")
"""The pattern of a random key, or of its prefix that names the group; no index has as many digits."""

GROUP_LABELS: Final = (labels.GROUP_INDEX, labels.GROUP_KEY)
"""The labels of a group's pods, in addition to the name of their LeaderWorkerSet."""


def label(obj: JSONObject) -> str:
    """Return the label that a pod and all objects of its group have, unchanged; empty if there is none."""
    return meta.labels(obj).get(labels.GROUP_INDEX, "")


def revision(obj: JSONObject) -> str:
    """Return the key of an object's revision, or of a ControllerRevision itself; empty if there is none."""
    return meta.labels(obj).get(labels.TEMPLATE_REVISION_HASH, "")


def is_hash(pod: JSONObject) -> bool:
    """Return whether the pod's group has a random key."""
    return meta.annotations(pod).get(labels.GROUP_IDENTITY) in WITH_RANDOM_KEYS


def is_hash_set(lws: JSONObject) -> bool:
    """Return whether the groups of a LeaderWorkerSet have random keys."""
    return meta.spec(lws).get("groupIdentity") in WITH_RANDOM_KEYS


def is_exhausted(leader: JSONObject) -> bool:
    """Return whether the leader's group used up its restarts, so that its pods are kept (N-RB-4)."""
    return meta.annotations(leader).get(labels.GROUP_RESTART_BUDGET_EXHAUSTED) == "true"


class GroupEnd(StrEnum):
    """How a group that runs to completion ended: its leader exited with code 0, or its deadline passed before."""

    COMPLETE = "Complete"
    LATE = "DeadlineExceeded"


def end_of(leader: JSONObject) -> GroupEnd | None:
    """Return how the leader's group ended, None if it has not ended, or not by itself."""
    text = meta.annotations(leader).get(labels.GROUP_ENDED, "")
    return GroupEnd(text) if text in tuple(GroupEnd) else None


def is_over(leader: JSONObject) -> bool:
    """Return whether the leader's group has ended for good: it used up its restarts, or ended by itself.

    Its leader is kept.
    """
    return is_exhausted(leader) or end_of(leader) is not None


def host(leader: JSONObject) -> str:
    """Return a leader's host name, from which the names of its worker StatefulSet, workers and service are built."""
    return str(meta.spec(leader).get("hostname") or meta.name(leader))


def subdomain(leader: JSONObject) -> str:
    """Return a leader's subdomain, empty if it has none."""
    return str(meta.spec(leader).get("subdomain") or "")


def is_leader(pod: JSONObject) -> bool:
    """Return whether the pod is a leader."""
    return meta.labels(pod).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX


def has_foreign_controller(pod: JSONObject) -> bool:
    """Return whether a pod with the labels of a LeaderWorkerSet was created by another controller than its workloads.

    Leaders belong to the StatefulSet with the name of the LeaderWorkerSet, or to a ReplicaSet of its Deployment.
    """
    controller = meta.controller_of(pod)
    if controller is None or controller["kind"] == "ReplicaSet":
        return False
    is_other = is_leader(pod) and controller["name"] != meta.labels(pod).get(labels.NAME)
    return controller["kind"] != "StatefulSet" or is_other


def rank(pod: JSONObject) -> int | None:
    """Return the rank of a pod in its group by its label, None if the label is not a number."""
    return decimals.natural(meta.labels(pod).get(labels.WORKER_INDEX, ""))


def place_of(pod: JSONObject) -> tuple[GroupName, int] | None:
    """Return the group and rank of a pod by its labels, None if it has none or belongs to a foreign controller."""
    if has_foreign_controller(pod):
        return None
    group, number = name_of(label(pod)), rank(pod)
    return None if group is None or number is None else (group, number)


def name_of(text: str) -> GroupName | None:
    """Return the name of the group with this label, None if the label names none.

    >>> name_of("12"), name_of("95e88034e460983f51a9952fe128729fbc0663b5"), name_of("95e88034"), name_of("a")
    (12, '95e88034', '95e88034', None)
    """
    if len(text) >= HOST_CHARACTERS and KEY.fullmatch(text):
        return text[:HOST_CHARACTERS]
    return decimals.natural(text)


def leader_of(pod: JSONObject) -> str:
    """Return the name of the leader of a pod's group, or the pod's own name if it names none."""
    if (meta.labels(pod).get(labels.WORKER_INDEX) or labels.LEADER_WORKER_INDEX) == labels.LEADER_WORKER_INDEX:
        return meta.name(pod)
    ordinal = ordinals.split(meta.name(pod))
    leader_name = meta.name(pod) if ordinal is None else ordinal.parent
    return meta.annotations(pod).get(labels.LEADER_NAME, leader_name) if is_hash(pod) else leader_name


def find_workers(leader: JSONObject, statefulsets: Iterable[JSONObject]) -> JSONObject | None:
    """Return the StatefulSet with the name of the leader's workers, or with the leader as controller.

    Other versions of the controller name it after the leader pod (N-HASH-20). A StatefulSet of another owner is not
    returned. One without a controller must select the pods of the group, as after a deletion of the leader that
    orphaned it.
    """
    name, own = host(leader), group_labels(leader)
    candidates = (obj for obj in statefulsets if meta.name(obj) == name or meta.is_controlled(obj, leader))
    return next((obj for obj in candidates if not is_foreign(obj, leader, own)), None)


def group_labels(leader: JSONObject) -> dict[str, str]:
    """Return the labels by which the StatefulSet of a leader's workers selects its pods (R-WSTS-3)."""
    copied = {key: value for key in GROUP_LABELS if (value := meta.labels(leader).get(key)) is not None}
    return {labels.NAME: meta.labels(leader).get(labels.NAME, "")} | copied


def leader_labels(name: str) -> dict[str, str]:
    """Return the labels by which the StatefulSet or Deployment of the leaders selects its pods (R-LSTS-2)."""
    return {labels.NAME: name, labels.WORKER_INDEX: labels.LEADER_WORKER_INDEX}


def is_foreign(workload: JSONObject, owner: JSONObject, selected: dict[str, str]) -> bool:
    """Return whether a StatefulSet or Deployment with our name is neither `owner`'s nor an orphan that it adopts.

    An orphan has no controller, and selects the pods with the labels `selected`. The object of a predecessor, which is
    deleted soon, is not foreign.
    """
    if meta.controller_of(workload) is not None:
        return meta.foreign_controller(workload, owner) is not None
    return bool(meta.spec(workload).get("selector") != {"matchLabels": selected})
