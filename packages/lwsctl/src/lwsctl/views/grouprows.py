"""Combines groups that have the same state into one row. Unready groups are first. Pure.

The input is the groups of a view. The output is rows of groups with the same state, reason and revision. Hundreds of
ready groups, or groups with the same problem, require only one row.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from kuberuntime.objects.ordinals import ranges
from lwsctl.model.groups import Group, root_cause_rank
from lwsctl.views import recreations, wording
from lwsctl.views.reasons import others_than_ready

FEW_GROUPS: Final = 10
"""The maximum number of groups of a LeaderWorkerSet for which each rank has a row."""

FEW_SETS: Final = 10
"""The maximum number of LeaderWorkerSets that are shown with their groups if they are not named."""

READY: Final = "ready"
"""The state of a group if all ranks are ready."""

MOST_RANGES: Final = 6
"""The maximum number of index ranges in a string."""


class GroupRow(Struct, frozen=True):
    """Groups with the same state, by index, and the reason why they are not ready."""

    groups: tuple[Group, ...]
    state: str
    reason: str

    @property
    def is_fine(self) -> bool:
        """Return whether the groups are ready."""
        return all(group.is_fine for group in self.groups)

    @property
    def group_names(self) -> str:
        """Return the group indexes as ranges, or the first few keys."""
        keys = [group.key for group in self.groups if group.key]
        if not keys:
            return ranges([group.index for group in self.groups], MOST_RANGES)
        return ",".join(keys[:MOST_RANGES]) + (f",… ({len(keys)})" if len(keys) > MOST_RANGES else "")

    @property
    def ready_ranks(self) -> int:
        """Return the number of ready ranks."""
        return sum(group.ready_ranks for group in self.groups)

    @property
    def ranks(self) -> int:
        """Return the number of ranks, with or without a pod."""
        return sum(len(group.ranks) for group in self.groups)

    @property
    def restarts(self) -> int:
        """Return the total number of restarts of all ranks."""
        return sum(group.restarts for group in self.groups)

    @property
    def revision(self) -> str:
        """Return the revision that the groups share."""
        return self.groups[0].revision

    @property
    def text(self) -> str:
        """Return the number of ready ranks, the states of the other ranks, and the reason."""
        others = "" if self.state == READY else f" ({self.state})"
        text = f"{self.ready_ranks} of {wording.format_count(self.ranks, 'rank')} ready{others}"
        return f"{text}; {self.reason}" if self.reason else text

    def age(self, now: datetime) -> str:
        """Return the age of the leaders. If ages differ, return the lowest and the highest age."""
        created = sorted(group.ranks[0].created for group in self.groups if group.ranks and group.ranks[0].created)
        if not created:
            return ""
        youngest, oldest = wording.age(created[-1], now), wording.age(created[0], now)
        return youngest if youngest == oldest else f"{youngest}-{oldest}"


def group_rows(groups: Iterable[Group], now: datetime) -> list[GroupRow]:
    """Combine groups that have the same state. Unready groups are first, and groups are sorted by index."""
    by_state: dict[tuple[str, ...], list[tuple[Group, str]]] = {}
    for group in sorted(groups, key=lambda group: group.index):
        why, common = _group_reason(group, now)
        key = ((others_than_ready(group) or READY), common, group.revision)
        by_state.setdefault(key, []).append((group, why))
    all_folds = [
        GroupRow(tuple(group for group, _ in members), key[0], members[0][1])  # the first one represents all
        for key, members in by_state.items()
    ]
    return sorted(all_folds, key=lambda fold: (fold.is_fine, fold.groups[0].index))


def _group_reason(group: Group, now: datetime) -> tuple[str, str]:
    """Return the reason of a group, and the reason without the group name.

    The latter is compared with other groups.
    """
    recreation_text = recreations.note(group, now)
    first = root_cause_rank(group.ranks)
    if first is None:
        return recreation_text, recreation_text
    leader = group.ranks[0].pod
    pod = "" if first.pod in first.why else f"{first.pod}: "
    return "; ".join(filter(None, [f"{pod}{first.why}", recreation_text])), "; ".join(
        filter(None, [first.why.replace(leader, ""), recreation_text])
    )
