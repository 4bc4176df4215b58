"""Log lines of ranks, each with its `group/rank` in the color of its group."""

import sys
from typing import Protocol

import click

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.disaggregatedset import ROLE
from leaderworkerset.cli.views.colors import Painter
from leaderworkerset.views.groups import place_of


class Sink(Protocol):
    """Takes log lines."""

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Take one line of a pod."""
        ...


class Printer:
    """Writes log lines to standard output, each after its `group/rank` unless `bare`."""

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self._painter = Painter(sys.stdout)

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Write one line of a pod."""
        click.echo(line.decode(errors="replace") if self._bare else prefixed(self._painter, pod, line))


def prefixed(painter: Painter, pod: JSONObject, line: bytes) -> str:
    """Put `group/rank` before a log line, and before that the role where the pod has one in a DisaggregatedSet."""
    group, rank = place_of(pod) or ("?", "?")
    place = "/".join(filter(None, [meta.labels(pod).get(ROLE), f"{group}/{rank}"]))
    return f"{painter.rank(place, group)} {line.decode(errors='replace')}"
