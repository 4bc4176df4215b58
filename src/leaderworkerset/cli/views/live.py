"""The live view of a run: on a terminal a table below the logs, elsewhere one line per change of a group."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

import click

from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.views import output
from leaderworkerset.cli.views.colors import Painter, wanted
from leaderworkerset.cli.views.loglines import prefixed
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.views.groups import Group, View


class Display(Protocol):
    """Shows groups and log lines."""

    def update(self, views: Sequence[View]) -> None:
        """Show the groups as they are now."""
        ...

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Show one line of a rank's log."""
        ...

    def close(self) -> None:
        """Leave the screen as it is."""
        ...


def display() -> Display:
    """Return the display that fits standard output."""
    return TerminalDisplay() if wanted(sys.stdout) else PlainDisplay()


class PlainDisplay:
    """Groups as lines on standard error, logs as lines on standard output."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, int], tuple[int, str]] = {}
        self._painter = Painter(sys.stdout)

    def update(self, views: Sequence[View]) -> None:
        """Print a line for every group of which more or fewer ranks are ready, or which got another trouble."""
        for view in views:
            for group in view.groups:
                key, facts = (view.name, group.index), (ready_ranks(group), trouble(group))
                if self._shown.get(key, (0, "")) != facts:
                    self._shown[key] = facts
                    say(summary(view, group), err=True)

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Print a log line after its group/rank."""
        click.echo(prefixed(self._painter, pod, line))

    def close(self) -> None:
        """Nothing to leave behind."""


class TerminalDisplay:
    """A table that stays below the scrolling logs."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._painter = Painter(sys.stdout)
        self._live = Live(console=Console(highlight=False, markup=False), auto_refresh=False)
        self._live.start()

    def update(self, views: Sequence[View]) -> None:
        """Draw the table anew."""
        from rich.text import Text

        now = SystemClock().now()
        lines = [line for view in views for line in ["", *output.sets([view], now), *output.groups(view.groups, now)]]
        self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Print a log line above the table."""
        from rich.text import Text

        self._live.console.print(Text.from_ansi(prefixed(self._painter, pod, line)))

    def close(self) -> None:
        """Leave the last table on the screen."""
        self._live.stop()


PASSING: Final = frozenset({"Missing", "Pending", "ContainerCreating", "PodInitializing", "Running", "Completed"})
"""States that come and go in every start and end; what else a rank may be is trouble, and so is a Pending with a reason."""


def ready_ranks(group: Group) -> int:
    """Count the ranks that are ready."""
    return sum(rank.is_ready for rank in group.ranks)


def trouble(group: Group) -> str:
    """Name the first rank that is in trouble, and why; empty where all goes as it should."""
    for rank in group.ranks:
        if rank.why and (rank.state == "Pending" or rank.state not in PASSING):
            return f"{rank.pod}: {rank.why}"
    return ""


def summary(view: View, group: Group) -> str:
    """Describe a group in one line: how many of its ranks are ready, and what the others are."""
    text = f"{view.name} group {group.index}: {ready_ranks(group)} of {len(group.ranks)} ranks ready"
    others = Counter(rank.state for rank in group.ranks if not rank.is_ready)
    if others:
        text += f" ({', '.join(f'{count} {state}' for state, count in sorted(others.items()))})"
    return "; ".join(filter(None, [text, trouble(group)]))
