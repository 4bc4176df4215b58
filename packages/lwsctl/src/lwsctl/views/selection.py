"""Defines the selection of a LeaderWorkerSet, group or rank, and reduces a view to a selection. Pure."""

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.selectors import EVERYTHING, LabelSelector
from leaderworkerset.api import labels
from leaderworkerset.api.groupname import GroupName, group_and_rank, parse_group_name
from lwsctl.model.leaderworkerset import View


class Selection(Struct, frozen=True):
    """A LeaderWorkerSet, or one of its groups or ranks."""

    name: str
    group: GroupName | None = None
    rank: int | None = None

    def __str__(self) -> str:
        return "/".join(str(part) for part in (self.name, self.group, self.rank) if part is not None)

    def covers(self, pod: JSONObject) -> bool:
        """Return whether a pod of the LeaderWorkerSet is part of the selection."""
        place = group_and_rank(pod)
        if place is None:
            return False
        return self.group in (None, place[0]) and self.rank in (None, place[1])

    def label_selector(self) -> str:
        """Return a label selector for the selected pods.

        It may match additional pods if the full group key is unknown.
        """
        index = self.group if isinstance(self.group, int) else None
        pairs = [(labels.NAME, self.name), (labels.GROUP_INDEX, index), (labels.WORKER_INDEX, self.rank)]
        return ",".join(f"{key}={value}" for key, value in pairs if value is not None)


def read(text: str) -> Selection | None:
    """Parse `LWS[/group[/rank]]`. Return None if the string is invalid.

    >>> read("web/1/3"), str(read("web")), read("web/x")
    (Selection(name='web', group=1, rank=3), 'web', None)
    """
    name, *numbers = text.split("/")
    group, rank = (
        (parse_group_name(numbers[0]) if numbers else None),
        (decimals.natural(numbers[1]) if numbers[1:] else None),
    )
    is_valid = name and len(numbers) <= 2 and not [group, rank][: len(numbers)].count(None)
    return Selection(name, group, rank) if is_valid else None


class Filter(Struct, frozen=True):
    """Selects pods of a LeaderWorkerSet by selection, groups and ranks. Empty groups or ranks select all."""

    selection: Selection
    groups: frozenset[GroupName] = frozenset()
    ranks: frozenset[int] = frozenset()
    labels: LabelSelector = EVERYTHING

    def covers(self, pod: JSONObject) -> bool:
        """Return whether a pod is selected."""
        place = group_and_rank(pod)
        if place is None or not self.selection.covers(pod) or not self.labels.matches(meta.labels(pod)):
            return False
        return (not self.groups or place[0] in self.groups) and (not self.ranks or place[1] in self.ranks)


def narrow(view: View, selection: Selection) -> View:
    """Reduce a view to one group or rank."""
    if selection.group is None:
        return view
    groups = (group for group in view.groups if group.name == selection.group)
    kept = tuple(
        replace(group, ranks=tuple(rank for rank in group.ranks if selection.rank in (None, rank.index)))
        for group in groups
    )
    return replace(view, groups=kept)


def unready_view(view: View) -> View | None:
    """Reduce a view to its unready ranks. Return None if the LeaderWorkerSet and all ranks are ready."""
    groups = (replace(group, ranks=tuple(rank for rank in group.ranks if not rank.is_fine)) for group in view.groups)
    kept = tuple(group for group in groups if group.ranks)
    return replace(view, groups=kept) if kept or not view.is_ready else None
