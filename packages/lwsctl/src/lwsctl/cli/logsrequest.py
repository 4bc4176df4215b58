"""Defines the request of `lws logs`, with the ranks whose logs are printed and the line filter."""

import re

import click
from msgspec import Struct

from kuberuntime.objects import selectors
from kuberuntime.objects.selectors import EVERYTHING, LabelSelector, SelectorError
from leaderworkerset.api.groupname import GroupName, parse_group_name
from lwsctl.cli.errors import UsageError
from lwsctl.cli.views.loglines import filter_lines, line_printer, need_names
from lwsctl.observation.podlogs import PodLogOptions, Sink
from lwsctl.views.selection import Filter, Selection


class LogsRequest(Struct, frozen=True, kw_only=True):
    """The logs to print, by name or label selector, and the line filter."""

    selections: tuple[Selection, ...]
    groups: frozenset[GroupName]
    ranks: frozenset[int]
    pattern: re.Pattern[str] | None
    most: int
    options: PodLogOptions
    labels: LabelSelector = EVERYTHING

    @property
    def is_one_rank(self) -> bool:
        """Return whether the request specifies exactly one rank of one LeaderWorkerSet."""
        return len(self.selections) == 1 and self.selections[0].rank is not None

    def pod_filter(self, selection: Selection) -> Filter:
        """Return the pod filter for one target."""
        return Filter(selection, self.groups, self.ranks, self.labels)

    def sink(self) -> Sink:
        """Return the function to which log lines are passed."""
        sink = line_printer(
            bare=self.is_one_rank, with_name=need_names(selection.name for selection in self.selections)
        )
        if self.pattern is None:
            return sink
        return filter_lines(sink, self.pattern, stamped=self.options.timestamps)


def group_name(text: str) -> GroupName:
    """Parse a group name."""
    name = parse_group_name(text)
    if name is None:
        raise click.BadParameter(
            f"{text!r} is not a valid group; use the group index, or the first characters of the group key"
        )
    return name


def labels_of(selector: str) -> LabelSelector:
    """Parse the label selector of -l."""
    try:
        return selectors.parse_labels(selector)
    except SelectorError as error:
        raise UsageError(f"--selector: Invalid value: {selector!r}: {error}") from error


def compile_pattern(pattern: str | None) -> re.Pattern[str] | None:
    """Parse the pattern of --grep."""
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--grep: Invalid value: {pattern!r}: {error}") from error
