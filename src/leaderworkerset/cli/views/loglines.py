"""Log lines of ranks, each with its `group/rank` in the color of its group."""

import re
import sys
from collections.abc import Sequence

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import ROLE
from leaderworkerset.cli.views.terminal import Painter, say
from leaderworkerset.observation.podlogs import Sink
from leaderworkerset.views.groups import place_of
from leaderworkerset.views.podcontainers import waiting


class Printer:
    """Writes log lines to standard output, each after its `group/rank` unless `bare`, or `LWS/group/rank` if `named`."""

    def __init__(self, *, bare: bool = False, named: bool = False) -> None:
        self._bare = bare
        self._named = named
        self._painter = Painter(sys.stdout)

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Write one line of a pod."""
        if self._bare:
            click.echo(line.decode(errors="replace"))
        else:
            click.echo(prefixed(self._painter, pod, line, named=self._named))


class Matching:
    """Passes on the lines that match a pattern; a time stamp before a line is not searched."""

    def __init__(self, sink: Sink, pattern: re.Pattern[str], *, stamped: bool = False) -> None:
        self._sink = sink
        self._pattern = pattern
        self._stamped = stamped

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Pass on one line, or drop it."""
        text = line.partition(b" ")[2] if self._stamped else line
        if self._pattern.search(text.decode(errors="replace")):
            self._sink.line(pod, line)


class WaitingNotes:
    """Reports on standard error what ranks without a log wait for: once, and again when the first one's state changes."""

    def __init__(self, name: str, container: str | None) -> None:
        self._name = name
        self._container = container
        self._said: set[str] = set()

    def update(self, pods: Sequence[JSONObject]) -> None:
        """Report the current pods; that there are none is reported, too."""
        found = waiting(pods, self._container) if pods else ("", f"no pods of {self._name} match now")
        if found is None:
            self._said.clear()
        elif found[0] not in self._said:
            self._said.add(found[0])
            say(f"note: waiting for logs: {found[1]}", err=True)


def prefixed(painter: Painter, pod: JSONObject, line: bytes, *, named: bool = False) -> str:
    """Prefix a log line with `group/rank`, and that with its LeaderWorkerSet, or its role in a DisaggregatedSet."""
    group, rank = place_of(pod) or ("?", "?")
    owner = meta.labels(pod).get(labels.NAME if named else ROLE)
    place = "/".join(filter(None, [owner, f"{group}/{rank}"]))
    return f"{painter.rank(place, group, rank)} {line.decode(errors='replace')}"
