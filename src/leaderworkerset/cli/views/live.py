"""The live view of a run: on a terminal a table below the logs, elsewhere one line per change of a group."""

import sys
from collections.abc import Sequence
from typing import Protocol

import click

from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.views import output
from leaderworkerset.cli.views.colors import Painter, wanted
from leaderworkerset.cli.views.loglines import prefixed
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.views.groups import View
from leaderworkerset.views.reasons import first_problem, summary


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
        """Print a line for every group of which more or fewer ranks are ready, or whose first problem changed."""
        for view in views:
            for group in view.groups:
                key, facts = (view.name, group.index), (group.ready_ranks, first_problem(group))
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
