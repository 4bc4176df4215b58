"""When a group that failed may be recreated: the first time at once, again and again ever later.

The Go controller recreates a group on every failure, as fast as it fails. Here a group that fails again soon after its
last recreation waits, by default from 10 seconds doubling up to 5 minutes: the kubelet's own numbers for containers that
crash. It may have a budget, too: what fails once more is left as it is. Why the record is an object of its own:
docs/adr/0003-recreation-backoff.md.

In: the record of the group's last recreation (a ControllerRevision without revision key, so that no one takes it for a
revision), the leader pod, the failure, the settings, the time. Out: the next record. A record condemns one leader by
UID: however often its pods fail, and whoever looks, this leader goes once, and its successor starts unmarked.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels
from leaderworkerset.core.restarts.failure import Failure
from leaderworkerset.core.restarts.settings import RestartSettings

RECORD_SUFFIX: Final = "-recreations"
"""What the name of a record has after that of the leader pod."""


class State(StrEnum):
    """How far a recreation is; it becomes `RECREATED` before the leader is deleted, so that no deletion is forgotten."""

    WAITING = labels.WAITING
    RECREATED = labels.RECREATED
    EXHAUSTED = labels.EXHAUSTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """One recreation of a group: of which leader and revision, which one in a row, not before when, for which failure.

    `resumed` is the text of the settings when it was decided.
    """

    leader: UID
    revision: str
    count: int
    due: datetime
    failure: Failure
    state: State = State.RECREATED
    resumed: str = ""

    def again(self, settings: RestartSettings, now: datetime) -> "Recreation":
        """Return the first recreation in a row of the same leader for the same failure, due at once."""
        return replace(self, count=1, due=now, state=State.RECREATED, resumed=settings.resumed)


def following(
    previous: Recreation | None, leader: JSONObject, failure: Failure, settings: RestartSettings, now: datetime
) -> Recreation:
    """Return the recreation of `leader` for a failure, after the previous one of the group.

    A recreation that never took place, because somebody else replaced the leader while the group waited, is not counted
    twice: the next failure takes its number and its time. A group of another revision is another program; it starts
    anew.
    """
    count, due = 1, now
    if previous is not None and _is_repeated(previous, leader, settings, now):
        took_place = previous.state is State.RECREATED
        count = previous.count + 1 if took_place else previous.count
        longest = now + settings.delay(count)
        due = longest if took_place else min(max(previous.due, now), longest)
    if settings.exceeds(count):
        state, due = State.EXHAUSTED, now
    else:
        state = State.WAITING if due > now else State.RECREATED
    return Recreation(
        leader=meta.uid(leader),
        revision=_revision(leader),
        count=count,
        due=due,
        failure=failure,
        state=state,
        resumed=settings.resumed,
    )


def _is_repeated(previous: Recreation, leader: JSONObject, settings: RestartSettings, now: datetime) -> bool:
    """Return whether the group fails in a row: the same program, soon, and nobody said that it starts anew."""
    is_same = previous.revision == _revision(leader) and previous.resumed == settings.resumed
    return is_same and now - previous.due < settings.reset_after


def record_name(leader: JSONObject) -> str:
    """Return the name of the record of the group that this leader leads."""
    return f"{meta.name(leader)}{RECORD_SUFFIX}"


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
    restarts = found.get(labels.FAILED_POD_RESTARTS, "")
    return Recreation(
        leader=UID(found.get(labels.RECREATED_LEADER, "")),
        revision=found.get(labels.TEMPLATE_REVISION_HASH, ""),
        count=count,
        due=due,
        failure=Failure(
            pod=found.get(labels.FAILED_POD, ""),
            uid=UID(found.get(labels.FAILED_POD_UID, "")),
            restarts=int(restarts) if restarts.isascii() and restarts.isdecimal() else 0,
            what=found.get(labels.FAILURE, ""),
        ),
        state=_state(found.get(labels.RECREATION_STATE, "")),
        resumed=found.get(labels.RESUMED, ""),
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
                labels.RECREATION_STATE: recreation.state.value,
                labels.FAILED_POD: recreation.failure.pod,
                labels.FAILED_POD_UID: recreation.failure.uid,
                labels.FAILED_POD_RESTARTS: str(recreation.failure.restarts),
                labels.FAILURE: recreation.failure.what,
                labels.RESUMED: recreation.resumed,
            },
            "ownerReferences": [meta.controller_reference(obj)],
        },
        "data": {},
        "revision": 0,
    }


def _state(text: str) -> State:
    """Read a state; a record without one is of a version that knew no other."""
    return State(text) if text in tuple(State) else State.RECREATED


def _revision(leader: JSONObject) -> str:
    return meta.labels(leader).get(labels.TEMPLATE_REVISION_HASH, "")
