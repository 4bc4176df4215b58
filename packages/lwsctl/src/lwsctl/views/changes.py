"""Computes the changes between two views of LeaderWorkerSets, for `lws get --watch` without a terminal. Pure.

Each subject (a LeaderWorkerSet or a group) has its own line. If only one rank in a group changed, the line describes
that rank, otherwise the group. In a LeaderWorkerSet with many groups, groups with the same change share a line.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import wording
from lwsctl.views.grouprows import FEW_GROUPS, GroupRow, group_rows
from lwsctl.views.reasons import summary

GONE: Final = ": deleted"


class ViewSubject(Struct, frozen=True):
    """The state of a LeaderWorkerSet or group, as named values and as one line.

    `group` is set if the set has several groups.
    """

    name: str
    owner: str
    facts: Mapping[str, str]
    line: str
    group: Group | None = None

    @property
    def rate_limit_key(self) -> str:
        """Return the name by which lines are grouped for rate limiting."""
        return self.name if self.group is None else f"{self.owner} groups"


def subjects(views: Sequence[View], now: datetime, *, with_namespace: bool = False) -> dict[str, ViewSubject]:
    """Return a description of each LeaderWorkerSet and each of its groups, by name."""
    view_subjects = (
        subject for view in views for subject in _subjects(view, now, f"{view.namespace}/" if with_namespace else "")
    )
    return {subject.name: subject for subject in view_subjects}


def lines(
    previous: Mapping[str, ViewSubject], now: Mapping[str, ViewSubject], paused: Container[str] = ()
) -> dict[str, str]:
    """Return a line for each subject that changed since it was last shown and whose lines are not rate-limited."""
    changed = {
        name: _change_line(previous.get(name), subject)
        for name, subject in now.items()
        if subject.rate_limit_key not in paused
    }
    gone = {name: f"{name}{GONE}" for name, before in previous.items() if name not in now and _is_missed(before, now)}
    return {name: text for name, text in changed.items() if text} | {
        name: text for name, text in gone.items() if previous[name].rate_limit_key not in paused
    }


def group_lines(texts: Mapping[str, str], known_subjects: Mapping[str, ViewSubject], now: datetime) -> list[str]:
    """Return the lines of subjects in order. In a large LeaderWorkerSet, groups with the same change share a line."""
    shared_lines, by_owner = [], defaultdict[tuple[str, bool], list[Group]](list)
    for name, text in texts.items():
        if (group := known_subjects[name].group) is None:
            shared_lines.append(text)
        else:
            by_owner[known_subjects[name].owner, text.endswith(GONE)].append(group)
    for (owner, is_gone), groups in by_owner.items():
        if is_gone:
            names = GroupRow(tuple(sorted(groups, key=lambda group: group.index)), "", "").group_names
            shared_lines.append(f"{owner} groups {names}{GONE}")
        else:
            shared_lines += [f"{owner} groups {fold.group_names}: {fold.text}" for fold in group_rows(groups, now)]
    return shared_lines


def _is_missed(before: ViewSubject, now: Mapping[str, ViewSubject]) -> bool:
    """Return whether to report the removal of a subject. Groups of a deleted LeaderWorkerSet are not reported."""
    return before.owner == before.name or before.owner in now


def _change_line(before: ViewSubject | None, subject: ViewSubject) -> str:
    previous_facts = before.facts if before else {}
    changed = [name for name, text in subject.facts.items() if previous_facts.get(name) != text]
    if not changed and previous_facts.keys() <= subject.facts.keys():
        return ""
    only = changed[0] if len(changed) == 1 and previous_facts.keys() <= subject.facts.keys() else subject.name
    return f"{only}: {subject.facts[only]}" if only != subject.name else subject.line


def _subjects(view: View, now: datetime, prefix: str) -> Iterator[ViewSubject]:
    name = f"{prefix}{view.name}"
    numbers = f"READY {view.ready}, DESIRED {view.desired}, UP-TO-DATE {view.up_to_date}"
    yield ViewSubject(name, name, {name: numbers}, f"{name}: {numbers}")
    for group in view.groups:
        own = f"{name} group {group.name}"
        line = f"{prefix}{summary(view, group, now)}"
        is_one_of_many = len(view.groups) > FEW_GROUPS
        yield ViewSubject(own, name, dict(_group_values(group, name, own)), line, group if is_one_of_many else None)


def _group_values(group: Group, name: str, own: str) -> Iterator[tuple[str, str]]:
    for rank in group.ranks:
        yield f"{name}/{rank.place}", describe(rank)
    if group.recreations:
        yield own, str(group.recreations)  # only compared; the line contains the remaining time


def describe(rank: Rank) -> str:
    """Describe a rank as in its table row, but without its age."""
    ready = ", ready" if rank.is_ready else ""
    restarts = f", {wording.format_count(rank.restarts, 'restart')}" if rank.restarts else ""
    why = wording.reason(rank)
    return f"{wording.state(rank)}{ready}{restarts}{f': {why}' if why else ''}"
