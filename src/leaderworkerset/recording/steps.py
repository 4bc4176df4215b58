"""The lines of one program about its progress, put together: its newest step, since when, and how fast it goes. Pure."""

from collections import deque
from dataclasses import replace
from datetime import datetime
from typing import Final

from leaderworkerset.api import progressnotes
from leaderworkerset.api.progressnotes import Progress

WINDOW: Final = 32
"""The steps from which the rate is computed: the newest ones, so that a slow start does not count for ever."""

LONGEST_LINE: Final = 4096
"""Bytes that are kept of a line which has no end yet; what is longer says nothing of progress."""


class Steps:
    """What a program has said; `newest` has the time since when it is at its step."""

    def __init__(self) -> None:
        self.newest: Progress | None = None
        self._points: deque[tuple[datetime, int]] = deque(maxlen=WINDOW)

    def add(self, line: str, at: datetime) -> None:
        """Add a line of its log; one that is older than the newest, as when a log is read again, changes nothing."""
        found, newest = progressnotes.of_line(line), self.newest
        if found is None or (newest is not None and newest.at is not None and at < newest.at):
            return
        if newest is not None and found.step == newest.step:
            self.newest = replace(found, at=newest.at, rate=newest.rate)
            return
        if newest is not None and found.step < newest.step:
            self._points.clear()  # it began again
        self._points.append((at, found.step))
        self.newest = replace(found, at=at, rate=self._rate())

    def _rate(self) -> float:
        (began, first), (ended, last) = self._points[0], self._points[-1]
        seconds = (ended - began).total_seconds()
        return (last - first) / seconds if seconds > 0 else 0.0


class LogLines:
    """Splits chunks of a log into lines, of which only the beginning is kept."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in the chunk."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:LONGEST_LINE]
        return lines
