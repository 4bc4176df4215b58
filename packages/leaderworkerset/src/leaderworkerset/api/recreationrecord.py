"""Defines the format of recreation records, which describe the last recreation of a group (docs/adr/0003).

The functions are pure.

A record is a ControllerRevision without a revision key, so that it is not treated as a revision, and is named after
the leader pod. Its content is stored in annotations. Other users may be allowed to write ControllerRevisions, so an
invalid record counts as absent.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import labels

SUFFIX: Final = "-recreations"
"""The suffix that is added to the leader pod name to form a record name."""

UNKNOWN: Final = UID("")

RECORDED: Final = re.compile(
    r"(?P<container>\S+): exit code (?P<code>[0-9]{1,10})(?:, (?P<reason>\w+)(?=[:,]|$))?(?:: |, last line: )?(?P<line>.*)"
)
"""The description of a terminated container in a recreation record (`core.restarts.failure`)."""


class RecreationState(StrEnum):
    """The progress of a recreation. To count the deletion, it is `RECREATED` before the leader is deleted."""

    WAITING = "waiting"
    RECREATED = "recreated"
    EXHAUSTED = "exhausted"


class Origin(StrEnum):
    """The origin of a pod failure. Only container and kubelet failures delay the recreation of a group."""

    PROGRAM = "program"
    """A container terminated or was restarted, or the kubelet evicted or rejected the pod."""
    DISRUPTION = "disruption"
    """The pod was evicted, preempted, or deleted with its node, and Kubernetes recorded the reason."""
    DELETION = "deletion"
    """The pod was deleted for an unknown reason."""


class Failure(Struct, frozen=True, kw_only=True):
    """A pod failure. `description` is its description, or an empty string if the failure is unknown.

    `longest_run` is the longest of the consecutive failed runs, in seconds, or None if no run is known.
    """

    pod: str
    uid: UID = UNKNOWN
    restarts: int = 0
    description: str = ""
    longest_run: int | None = None
    origin: Origin = Origin.PROGRAM


class Recreation(Struct, frozen=True, kw_only=True):
    """A group recreation, with its leader, revision, consecutive number, earliest time, and the failure.

    `resumed` is the text of the settings at the time of the decision. `used_restarts` is the number of restarts that the group
    has used, including this one. It is None until the recreation is due, and if restarts are not counted. `deletions`
    are the times of the last recreations that were caused by deletions for unknown reasons. `count` includes neither
    these recreations nor disruptions.
    """

    leader: UID
    revision: str
    count: int
    due_at: datetime
    failure: Failure
    state: RecreationState = RecreationState.RECREATED
    resumed: str = ""
    used_restarts: int | None = None
    deletions: tuple[datetime, ...] = ()


def record_name(leader: JSONObject) -> str:
    """Return the name of the recreation record for the group of this leader."""
    return f"{meta.name(leader)}{SUFFIX}"


def replaced_record_name(leader: JSONObject) -> str:
    """Return the record name of the group that the leader's group replaces, or an empty string if there is none."""
    return f"{meta.annotations(leader).get(labels.REPLACES, '')}{SUFFIX}"


def leader_of(record: JSONObject) -> str:
    """Return the leader pod name that is contained in a record name."""
    return meta.name(record).removesuffix(SUFFIX)


def read(record: JSONObject | None) -> Recreation | None:
    """Parse a record. Return None if it is absent or invalid."""
    annotations = {} if record is None else meta.annotations(record)
    due = timestamps.read(annotations.get(labels.RECREATE_AFTER, ""))
    count = decimals.natural(annotations.get(labels.RECREATIONS, ""))
    if due is None or count is None:
        return None
    return Recreation(
        leader=UID(annotations.get(labels.RECREATED_LEADER, "")),
        revision=annotations.get(labels.TEMPLATE_REVISION_HASH, ""),
        count=count,
        due_at=due,
        failure=Failure(
            pod=annotations.get(labels.FAILED_POD, ""),
            uid=UID(annotations.get(labels.FAILED_POD_UID, "")),
            restarts=decimals.natural(annotations.get(labels.FAILED_POD_RESTARTS, "")) or 0,
            description=annotations.get(labels.FAILURE, ""),
            longest_run=decimals.natural(annotations.get(labels.LONGEST_FAILED_RUN, "")),
            origin=_parse_origin(annotations.get(labels.FAILURE_ORIGIN, "")),
        ),
        state=_parse_state(annotations.get(labels.RECREATION_STATE, "")),
        resumed=annotations.get(labels.RESUMED, ""),
        used_restarts=decimals.natural(annotations.get(labels.RESTARTS_USED, "")),
        deletions=tuple(filter(None, map(timestamps.read, annotations.get(labels.DELETED_AT, "").split(",")))),
    )


def requires_recreation(record: JSONObject | None, leader: JSONObject) -> bool:
    """Return whether the record requires recreating the leader's group, or marks it as exhausted.

    The record must name the UID of the leader.
    """
    known = read(record)
    return known is not None and known.leader == meta.uid(leader)


def write(recreation: Recreation) -> Mapping[str, str]:
    """Return the annotations of a record."""
    annotations = {
        labels.RECREATIONS: str(recreation.count),
        labels.RECREATED_LEADER: recreation.leader,
        labels.TEMPLATE_REVISION_HASH: recreation.revision,
        labels.RECREATE_AFTER: recreation.due_at.isoformat(),
        labels.RECREATION_STATE: recreation.state.value,
        labels.FAILED_POD: recreation.failure.pod,
        labels.FAILED_POD_UID: recreation.failure.uid,
        labels.FAILED_POD_RESTARTS: str(recreation.failure.restarts),
        labels.FAILURE: recreation.failure.description,
        labels.RESUMED: recreation.resumed,
    }
    numbers = {
        labels.RESTARTS_USED: recreation.used_restarts,
        labels.LONGEST_FAILED_RUN: recreation.failure.longest_run,
    }
    annotations |= {name: str(number) for name, number in numbers.items() if number is not None}
    if recreation.failure.origin is not Origin.PROGRAM:
        annotations[labels.FAILURE_ORIGIN] = recreation.failure.origin.value
    if recreation.deletions:
        annotations[labels.DELETED_AT] = ",".join(time.isoformat() for time in recreation.deletions)
    return annotations


def _parse_origin(text: str) -> Origin:
    """Parse an origin. A record without an origin refers to a container."""
    return Origin(text) if text in tuple(Origin) else Origin.PROGRAM


def _parse_state(text: str) -> RecreationState:
    """Parse a state. Earlier versions, which had only one state, did not record it."""
    return RecreationState(text) if text in tuple(RecreationState) else RecreationState.RECREATED
