"""Changes between two views of LeaderWorkerSets: what `lws get --watch` prints where there is no terminal. Pure.

A subject has a line of its own: a LeaderWorkerSet, or a group. If one rank of a group changed, the line describes that
rank; if several did, the group.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from leaderworkerset.views import wording
from leaderworkerset.views.groups import Group, Rank, View
from leaderworkerset.views.reasons import summary


@dataclass(frozen=True, slots=True)
class ViewSubject:
    """The facts of a LeaderWorkerSet or a group, each by the name it describes, and all of them in one line."""

    name: str
    owner: str
    facts: Mapping[str, str]
    whole: str


def subjects(views: Sequence[View], now: datetime, *, with_namespace: bool = False) -> dict[str, ViewSubject]:
    """Describe each LeaderWorkerSet and each of its groups, by name."""
    found = (one for view in views for one in _subjects(view, now, f"{view.namespace}/" if with_namespace else ""))
    return {one.name: one for one in found}


def lines(
    shown: Mapping[str, ViewSubject], now: Mapping[str, ViewSubject], paused: Container[str] = ()
) -> dict[str, str]:
    """Return a line for every subject that changed since it was shown, by name; paused ones have none."""
    changed = {name: _line(shown.get(name), subject) for name, subject in now.items()}
    gone = {name: f"{name}: gone" for name, was in shown.items() if name not in now and _is_missed(was, now)}
    return {name: text for name, text in (changed | gone).items() if text and name not in paused}


def _is_missed(was: ViewSubject, now: Mapping[str, ViewSubject]) -> bool:
    """Return whether the removal of a subject is reported: groups of a deleted LeaderWorkerSet are not."""
    return was.owner == was.name or was.owner in now


def _line(was: ViewSubject | None, subject: ViewSubject) -> str:
    known = was.facts if was else {}
    changed = [name for name, text in subject.facts.items() if known.get(name) != text]
    if not changed and known.keys() <= subject.facts.keys():
        return ""
    only = changed[0] if len(changed) == 1 and known.keys() <= subject.facts.keys() else subject.name
    return f"{only}: {subject.facts[only]}" if only != subject.name else subject.whole


def _subjects(view: View, now: datetime, prefix: str) -> Iterator[ViewSubject]:
    name = f"{prefix}{view.name}"
    numbers = f"READY {view.ready}, DESIRED {view.desired}, UP-TO-DATE {view.up_to_date}"
    yield ViewSubject(name, name, {name: numbers}, f"{name}: {numbers}")
    for group in view.groups:
        own = f"{name} group {group.index}"
        yield ViewSubject(own, name, dict(_facts(group, name, own)), f"{prefix}{summary(view, group, now)}")


def _facts(group: Group, name: str, own: str) -> Iterator[tuple[str, str]]:
    for rank in group.ranks:
        yield f"{name}/{rank.place}", describe(rank)
    if group.recreations:
        yield own, str(group.recreations)  # only compared: the line says how much time is left


def describe(rank: Rank) -> str:
    """Describe a rank like its row in the table, without its age."""
    ready = ", ready" if rank.is_ready else ""
    restarts = f", {wording.counted(rank.restarts, 'restart')}" if rank.restarts else ""
    why = wording.reason(rank)
    return f"{wording.state(rank)}{ready}{restarts}{f': {why}' if why else ''}"
