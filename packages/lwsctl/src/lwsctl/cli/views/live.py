"""Shows a run live, as a table below the logs on a terminal, or as one line for each changed group."""

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias

import click

from kuberuntime.clock import Clock, SystemClock
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.groupname import GroupName
from lwsctl.cli.views import livetable
from lwsctl.cli.views.loglines import add_prefix, need_names
from lwsctl.cli.views.terminal import Painter, escape, is_colored, print_text
from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.views.grouprows import FEW_GROUPS, FEW_SETS
from lwsctl.views.reasons import first_problem, summary

REFRESH: Final = 0.5
"""The maximum interval in seconds between updates of a live view, to update ages and show delayed lines."""

BETWEEN_LINES: Final = timedelta(seconds=1)
"""The minimum time between lines of a group."""

BETWEEN_PICTURES: Final = timedelta(seconds=0.1)
"""The minimum time between updates of the table."""


Place: TypeAlias = tuple[str, str, GroupName]
"""The namespace, the name of the set and the group."""

Facts: TypeAlias = tuple[int, str, Recreations | None]

UNTOUCHED: Final[Facts] = (0, "", None)
"""The state of a group before a line was printed."""


class Display(Protocol):
    """Shows groups and log lines while a command runs."""

    def update(self, views: Sequence[View]) -> None:
        """Show the current groups."""

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Show a log line of a rank."""

    def note(self, text: str) -> None:
        """Show a permanent line that does not belong to a rank."""

    def close(self) -> None:
        """Finish the display, and leave the screen unchanged."""


def display(sets: Sequence[str]) -> Display:
    """Return the display of these sets for the current stdout."""
    with_name = need_names(sets)
    return TerminalDisplay(with_name=with_name) if is_colored(sys.stdout) else PlainDisplay(with_name=with_name)


class PlainDisplay:
    """Prints groups as lines on stderr, and logs as lines on stdout.

    At most one line per second is printed for a group. Ready groups are printed immediately, because users and
    scripts wait for them.
    """

    def __init__(self, clock: Clock | None = None, *, with_name: bool = False) -> None:
        self._clock = clock or SystemClock()
        self._with_name = with_name
        self._shown: dict[Place, Facts] = {}
        self._last: dict[Place, datetime] = {}
        self._views: Sequence[View] = ()
        self._painter = Painter(sys.stdout)

    def update(self, views: Sequence[View]) -> None:
        """Print a line for each changed group. Unready groups are printed at most once per second."""
        self._views = views
        self._print(BETWEEN_LINES)

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Print a log line after its `group/rank` prefix."""
        click.echo(add_prefix(self._painter, pod, line, with_name=self._with_name))

    def note(self, text: str) -> None:
        """Print a line on stderr."""
        print_text(text, err=True)

    def close(self) -> None:
        """Print the lines that were delayed."""
        self._print(timedelta())

    def _print(self, distance: timedelta) -> None:
        now = self._clock.now()
        for view in self._views:
            for group in view.groups:
                place, facts = (view.namespace, view.name, group.name), _compared_values(group)
                is_due = place not in self._last or now - self._last[place] >= distance or group.is_ready
                if is_due and self._shown.get(place, UNTOUCHED) != facts:
                    self._shown[place], self._last[place] = facts, now
                    print_text(summary(view, group, now), err=True)


def _compared_values(group: Group) -> Facts:
    """Return the values whose changes are printed."""
    return group.ready_ranks, first_problem(group), group.recreations


class TerminalDisplay:
    """A table that remains below the logs while they scroll."""

    refresh: float | None = REFRESH

    def __init__(self, *, with_namespace: bool = False, with_name: bool = False) -> None:
        from rich.console import Console
        from rich.live import Live

        self._clock = SystemClock()
        self._with_namespace = with_namespace
        self._with_name = with_name
        self._drawn = datetime.min.replace(tzinfo=self._clock.now().tzinfo)
        self._views: Sequence[View] = ()
        self._painter = Painter(sys.stdout)
        self._live = Live(console=Console(highlight=False, markup=False), auto_refresh=False)
        self._live.start()

    def update(self, views: Sequence[View]) -> None:
        """Draw the table. If it was just drawn, it is drawn at the next update."""
        self._views = views
        now = self._clock.now()
        if now - self._drawn >= BETWEEN_PICTURES:
            self._drawn = now
            self._draw(self._live.console.size.height - 1)

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Print a log line above the table."""
        from rich.text import Text

        self._live.console.print(Text.from_ansi(add_prefix(self._painter, pod, line, with_name=self._with_name)))

    def note(self, text: str) -> None:
        """Print a line above the table."""
        self._live.console.print(escape(text))

    def close(self) -> None:
        """Leave the last table on the screen. If it has few rows, show all rows."""
        is_short = len(self._views) <= FEW_SETS and all(len(view.groups) <= FEW_GROUPS for view in self._views)
        self._draw(None if is_short else self._live.console.size.height - 1, is_last=True)
        self._live.stop()

    def _draw(self, height: int | None, *, is_last: bool = False) -> None:
        from rich.text import Text

        size = livetable.Size(self._live.console.size.width, height)
        lines = livetable.lines(self._views, self._clock.now(), size, with_namespace=self._with_namespace)
        self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=not is_last)
