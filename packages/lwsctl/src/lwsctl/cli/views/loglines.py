"""Prints log lines of ranks with a `group/rank` prefix in the color of the group."""

import re
import sys
from collections.abc import Iterable, Sequence

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import ROLE
from leaderworkerset.api.groupname import group_and_rank
from lwsctl.cli.views.terminal import Painter, print_text
from lwsctl.observation.podlogs import Sink
from lwsctl.views.podcontainers import waiting_for_logs


def need_names(sets: Iterable[str]) -> bool:
    """Return whether lines start with the LeaderWorkerSet name, because they are from several LeaderWorkerSets."""
    return len(set(sets)) > 1


def line_printer(*, bare: bool, with_name: bool) -> Sink:
    """Return a function that prints log lines.

    Each line has the prefix `group/rank` unless `bare`, or `LWS/group/rank` if `with_name`.
    """
    painter = Painter(sys.stdout)

    def write(pod: JSONObject, line: bytes) -> None:
        click.echo(line.decode(errors="replace") if bare else add_prefix(painter, pod, line, with_name=with_name))

    return write


def filter_lines(sink: Sink, pattern: re.Pattern[str], *, stamped: bool) -> Sink:
    """Return a function that passes on the lines that match a pattern. Timestamps are ignored by the match."""

    def pass_on(pod: JSONObject, line: bytes) -> None:
        text = line.partition(b" ")[2] if stamped else line
        if pattern.search(text.decode(errors="replace")):
            sink(pod, line)

    return pass_on


class WaitingNotes:
    """Reports ranks without logs on stderr, once and when the state of the first rank changes."""

    def __init__(self, name: str, container: str | None) -> None:
        self._name = name
        self._container = container
        self._said: set[str] = set()

    def update(self, pods: Sequence[JSONObject]) -> None:
        """Report the current pods, even if there are none."""
        state = waiting_for_logs(pods, self._container) if pods else ("", f"no pods of {self._name} match")
        if state is None:
            self._said.clear()
        elif state[0] not in self._said:
            self._said.add(state[0])
            print_text(f"note: waiting for logs: {state[1]}", err=True)


def add_prefix(painter: Painter, pod: JSONObject, line: bytes, *, with_name: bool = False) -> str:
    """Prefix a log line with `group/rank`, and with its LeaderWorkerSet or its DisaggregatedSet role."""
    group, rank = group_and_rank(pod) or ("?", "?")
    owner = meta.labels(pod).get(labels.NAME if with_name else ROLE)
    place = "/".join(filter(None, [owner, f"{group}/{rank}"]))
    return f"{painter.rank(place, group, rank)} {line.decode(errors='replace')}"
