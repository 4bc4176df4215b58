"""When a group that failed may be recreated: the first time at once, repeated failures with growing delays.

The Go controller recreates a group on every failure at once. Here a group that fails again soon after its last
recreation waits: by default 10 seconds, doubling up to 5 minutes, which are the kubelet's numbers for containers that
crash. The number of recreations may be limited, too (`core/restarts/counts.py`); what fails after the last one is
exhausted. Why the record is an object of its own: docs/adr/0003-recreation-backoff.md.

In: the record of the group's last recreation (a ControllerRevision without revision key, so that it is not treated as a
revision), the leader pod, the failure, the settings, the time. Out: the next record. A record names the leader to delete
by UID. However often its pods fail and whichever manager reconciles, this leader is deleted once, and the next one
starts unmarked.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.restarts.failure import Failure
from leaderworkerset.core.restarts.settings import RestartSettings

RECORD_SUFFIX: Final = "-recreations"
"""The suffix of a record's name, after the name of the leader pod."""


class RecreationState(StrEnum):
    """The progress of a recreation; it becomes `RECREATED` before the leader is deleted, so that the deletion is counted."""

    WAITING = labels.WAITING
    RECREATED = labels.RECREATED
    EXHAUSTED = labels.EXHAUSTED


class Recreation(Struct, frozen=True, kw_only=True):
    """One recreation of a group: its leader and revision, its number in a row, its earliest time, and the failure.

    `resumed` is the text of the settings when it was decided, `used` the restarts that the group has used with this one;
    None as long as it is not due, and where they are not counted.
    """

    leader: UID
    revision: str
    count: int
    due: datetime
    failure: Failure
    state: RecreationState = RecreationState.RECREATED
    resumed: str = ""
    used: int | None = None

    def carried_out(self, settings: RestartSettings, used: int) -> "Recreation":
        """Return it as due now; a group that has used so many restarts uses one more."""
        if self.state is RecreationState.RECREATED:
            return self
        counted = None if settings.max_restarts is None else used + 1
        return replace(self, state=RecreationState.RECREATED, used=counted)

    def again(self, settings: RestartSettings, now: datetime) -> "Recreation":
        """Return the first recreation in a row of the same leader for the same failure, due at once."""
        waiting = replace(self, count=1, due=now, state=RecreationState.WAITING, resumed=settings.resumed)
        return waiting.carried_out(settings, 0)


def following(
    previous: Recreation | None,
    leader: JSONObject,
    failure: Failure,
    settings: RestartSettings,
    now: datetime,
    used: int = 0,
) -> Recreation:
    """Return the recreation of `leader` for a failure, after the previous one of the group and `used` ones in all.

    A recreation that did not take place, because the leader was replaced by other means while the group waited, is not
    counted twice: the next failure takes its number and its time. A group of another revision is another program; its
    count starts again. So it does, and what the group has used, where the user changed the text that resumes groups.
    """
    count, due = 1, now
    if previous is not None and _is_repeated(previous, leader, settings, now):
        took_place = previous.state is RecreationState.RECREATED
        count = previous.count + 1 if took_place else previous.count
        longest = now + settings.delay(count)
        due = longest if took_place else min(max(previous.due, now), longest)
    if previous is not None and previous.resumed != settings.resumed:
        used = 0
    spent = settings.is_spent(used)
    new = Recreation(
        leader=meta.uid(leader),
        revision=groupname.revision(leader),
        count=count,
        due=now if spent else due,
        failure=failure,
        state=RecreationState.EXHAUSTED if spent else RecreationState.WAITING,
        resumed=settings.resumed,
    )
    return new if spent or due > now else new.carried_out(settings, used)


def _is_repeated(previous: Recreation, leader: JSONObject, settings: RestartSettings, now: datetime) -> bool:
    """Return whether the group fails in a row: same revision, soon after the last recreation, and not reset by the user."""
    is_same = previous.revision == groupname.revision(leader) and previous.resumed == settings.resumed
    return is_same and now - previous.due < settings.reset_after


def record_name(leader: JSONObject) -> str:
    """Return the name of the record of the group with this leader."""
    return f"{meta.name(leader)}{RECORD_SUFFIX}"


def replaced_record_name(leader: JSONObject) -> str:
    """Return the name of the record of the group that the leader's replaces; of none if it replaces none."""
    return f"{meta.annotations(leader).get(labels.REPLACES, '')}{RECORD_SUFFIX}"


def leader_of(record: JSONObject) -> str:
    """Return the name of the leader pod that a record is named after."""
    return meta.name(record).removesuffix(RECORD_SUFFIX)


def read(record: JSONObject | None) -> Recreation | None:
    """Read a record; an unreadable one counts as absent."""
    found = {} if record is None else meta.annotations(record)
    try:
        due = datetime.fromisoformat(found[labels.RECREATE_AFTER])
    except (KeyError, ValueError):
        return None
    count = decimals.natural(found.get(labels.RECREATIONS, ""))
    if due.tzinfo is None or count is None:
        return None
    return Recreation(
        leader=UID(found.get(labels.RECREATED_LEADER, "")),
        revision=found.get(labels.TEMPLATE_REVISION_HASH, ""),
        count=count,
        due=due,
        failure=Failure(
            pod=found.get(labels.FAILED_POD, ""),
            uid=UID(found.get(labels.FAILED_POD_UID, "")),
            restarts=decimals.natural(found.get(labels.FAILED_POD_RESTARTS, "")) or 0,
            what=found.get(labels.FAILURE, ""),
        ),
        state=_state(found.get(labels.RECREATION_STATE, "")),
        resumed=found.get(labels.RESUMED, ""),
        used=decimals.natural(found.get(labels.RESTARTS_USED, "")),
    )


def build(obj: JSONObject, leader: JSONObject, recreation: Recreation) -> JSONObject:
    """Build the record of a recreation."""
    annotations = {
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
    }
    used = {} if recreation.used is None else {labels.RESTARTS_USED: str(recreation.used)}
    return build_record(obj, leader, annotations | used)


def build_record(obj: JSONObject, leader: JSONObject, annotations: Mapping[str, str]) -> JSONObject:
    """Build the record of a group: owned by the LeaderWorkerSet, so that it outlives the leader and is deleted with the set."""
    own = {labels.NAME: meta.name(obj), labels.GROUP_INDEX: groupname.label(leader)}
    name = record_name(leader)
    return CONTROLLER_REVISIONS.controlled(obj, name, own, annotations=annotations, data={}, revision=0)


def _state(text: str) -> RecreationState:
    """Read a state; a record without one is from a version that had no other."""
    return RecreationState(text) if text in tuple(RecreationState) else RecreationState.RECREATED
