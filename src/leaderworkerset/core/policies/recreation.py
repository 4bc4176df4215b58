"""When a group that failed may be recreated: the first time at once, again and again ever later.

The Go controller recreates a group on every failure, as fast as it fails. Here a group that fails again within
`STABLE` of its last recreation waits, from 10 seconds doubling up to 5 minutes: the kubelet's own numbers for
containers that crash. Why the record is an object of its own: docs/adr/0003-recreation-backoff.md.

In: the record of the group's last recreation (a ControllerRevision without revision key, so that no one takes it for a
revision), the leader pod, the time. Out: the next record. A record condemns one leader by UID: however often its pods
fail, and whoever looks, this leader goes once, and its successor starts unmarked.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels

STABLE: Final = timedelta(minutes=10)
"""A group that did not fail for so long starts anew."""

FIRST_DELAY: Final = timedelta(seconds=10)
LONGEST_DELAY: Final = timedelta(minutes=5)
DOUBLINGS: Final = 5
"""How many reach the longest delay: 10 s times 2 to the 5th is more than 5 minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """One recreation of a group: of which leader and revision, which one in a row, not before when, for which pod."""

    leader: UID
    revision: str
    count: int
    due: datetime
    failed_pod: str


def following(previous: Recreation | None, leader: JSONObject, failed: JSONObject, now: datetime) -> Recreation:
    """Return the recreation of `leader` for the failure of the pod `failed`, after the previous one of the group.

    A group of another revision is another program; it starts anew.
    """
    revision = _revision(leader)
    is_repeated = previous is not None and previous.revision == revision and now - previous.due < STABLE
    count = previous.count + 1 if previous is not None and is_repeated else 1
    return Recreation(
        leader=meta.uid(leader),
        revision=revision,
        count=count,
        due=now + delay(count),
        failed_pod=meta.name(failed),
    )


def delay(count: int) -> timedelta:
    """Return how long the recreation number `count` in a row waits.

    >>> [int(delay(count).total_seconds()) for count in (1, 2, 3, 6, 7, 1000)]
    [0, 10, 20, 160, 300, 300]
    """
    if count <= 1:
        return timedelta()
    doublings: int = 2 ** min(count - 2, DOUBLINGS)
    return min(FIRST_DELAY * doublings, LONGEST_DELAY)


def record_name(leader: JSONObject) -> str:
    """Return the name of the record of the group that this leader leads."""
    return f"{meta.name(leader)}-recreations"


def read(record: JSONObject | None) -> Recreation | None:
    """Read a record; one that cannot be read is as good as none."""
    found = {} if record is None else meta.annotations(record)
    try:
        due = datetime.fromisoformat(found[labels.RECREATE_AFTER])
        count = int(found[labels.RECREATIONS])
    except (KeyError, ValueError):
        return None
    if due.tzinfo is None:
        return None
    return Recreation(
        leader=UID(found.get(labels.RECREATED_LEADER, "")),
        revision=found.get(labels.TEMPLATE_REVISION_HASH, ""),
        count=count,
        due=due,
        failed_pod=found.get(labels.FAILED_POD, ""),
    )


def build(obj: JSONObject, leader: JSONObject, recreation: Recreation) -> JSONObject:
    """Build the record: owned by the LeaderWorkerSet, so that it outlives the leader and goes with the whole."""
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": record_name(leader),
            "namespace": meta.namespace(leader),
            "labels": {
                labels.NAME: meta.name(obj),
                labels.GROUP_INDEX: meta.labels(leader).get(labels.GROUP_INDEX, ""),
            },
            "annotations": {
                labels.RECREATIONS: str(recreation.count),
                labels.RECREATED_LEADER: recreation.leader,
                labels.TEMPLATE_REVISION_HASH: recreation.revision,
                labels.RECREATE_AFTER: recreation.due.isoformat(),
                labels.FAILED_POD: recreation.failed_pod,
            },
            "ownerReferences": [meta.controller_reference(obj)],
        },
        "data": {},
        "revision": 0,
    }


def _revision(leader: JSONObject) -> str:
    return meta.labels(leader).get(labels.TEMPLATE_REVISION_HASH, "")
