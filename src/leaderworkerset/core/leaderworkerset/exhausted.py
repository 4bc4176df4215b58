"""Which groups were recreated too often and are left failed, and the condition that reports it (docs/adr/0003).

In: the records of recreations, and the existing leaders. Out: the conditions with this one added or removed, and the
records that are not needed any more. The condition exists only while there are such groups; otherwise the conditions
are those of the Go controller.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import RESTARTS_EXHAUSTED
from leaderworkerset.api.leaderworkerset import Condition
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.policies.recreation import RecreationState, leader_of

NAMED: Final = 10
"""The maximum number of groups that a message names."""


def is_exhausted(record: JSONObject) -> bool:
    """Return whether the record says that its group is not recreated any more."""
    return meta.annotations(record).get(labels.RECREATION_STATE) == RecreationState.EXHAUSTED


def groups(records: Iterable[JSONObject], leaders: Mapping[str, GroupFacts]) -> list[int | str]:
    """Return the groups that are left failed, by index or else by leader: those whose leader is still the record's."""
    indexes, names = [], []
    for record in records:
        group = leaders.get(leader_of(record))
        if group is None or group.is_deleting or not is_exhausted(record):
            continue
        if meta.annotations(record).get(labels.RECREATED_LEADER) == group.uid:
            if group.index is None:
                names.append(group.leader)
            else:
                indexes.append(group.index)
    return [*sorted(indexes), *sorted(names)]


def abandoned(records: Iterable[JSONObject], leaders: Mapping[str, GroupFacts], replicas: int) -> list[JSONObject]:
    """Return the records of groups that were scaled down: beyond the replicas, and without a leader."""
    return [
        record
        for record in records
        if leader_of(record) not in leaders
        and (index := decimals.natural(groupname.label(record))) is not None
        and index >= replicas
    ]


def unfollowed(records: Iterable[JSONObject], leaders: Mapping[str, GroupFacts]) -> list[JSONObject]:
    """Return the records of groups with random keys that are gone, and that no leader replaces."""
    needed = leaders.keys() | {group.replaces for group in leaders.values()}
    return [record for record in records if leader_of(record) not in needed]


def with_condition(
    conditions: Sequence[Condition], indexes: Sequence[int | str], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with that of these groups, unchanged if it is up to date."""
    known = next((one for one in conditions if one.type == RESTARTS_EXHAUSTED.type), None)
    if not indexes:
        return tuple(one for one in conditions if one.type != RESTARTS_EXHAUSTED.type)
    since = timestamps.render(now) if known is None else known.last_transition_time
    told = Condition(
        type=RESTARTS_EXHAUSTED.type,
        status="True",
        reason=RESTARTS_EXHAUSTED.reason,
        message=message(indexes),
        last_transition_time=since,
        observed_generation=generation,
    )
    return (*conditions, told) if known is None else tuple(told if one is known else one for one in conditions)


def message(indexes: Sequence[int | str]) -> str:
    """Return the message about groups that are left failed.

    >>> message([3])
    'group 3 failed more often in a row than max-group-restarts allows, and is left as it is'
    >>> message(range(12))[:60]
    'groups 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more failed more o'
    """
    named = ", ".join(str(index) for index in indexes[:NAMED])
    more = f" and {len(indexes) - NAMED} more" if len(indexes) > NAMED else ""
    subject, left = ("group", "is left as it is") if len(indexes) == 1 else ("groups", "are left as they are")
    return f"{subject} {named}{more} failed more often in a row than max-group-restarts allows, and {left}"
