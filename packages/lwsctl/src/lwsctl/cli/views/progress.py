"""Shows the progress of a wait as a line that is updated on a terminal, or as separate lines."""

import asyncio
import os
import shutil
import sys
from typing import Final, TextIO

from lwsctl.cli.views.terminal import escape

BETWEEN_LINES: Final = 2.0
"""The interval in seconds between separate lines. Many groups may become ready in succession."""


class ProgressLine:
    """Shows on stderr what a command waits for. An unchanged message is shown once.

    Plain lines are printed at intervals of `between` seconds. This requires a running event loop.
    """

    def __init__(self, stream: TextIO | None = None, between: float = 0.0) -> None:
        self._between = between
        self._stream = stream or sys.stderr
        self.rewrites = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = ""
        self._newest = ""
        self._pause: asyncio.TimerHandle | None = None

    def show(self, text: str) -> None:
        """Show the condition that the command waits for."""
        self._newest = escape(text)
        if self._pause is None:
            self._show_newest()

    def _show_newest(self) -> None:
        self._pause = None
        text = self._newest
        if text == self._shown or not text:
            return
        self._shown = text
        if self.rewrites:
            width = shutil.get_terminal_size().columns
            self._stream.write(f"\r\x1b[K{text[: width - 1]}")
        else:
            self._stream.write(f"{text}\n")
            if self._between:
                self._pause = asyncio.get_running_loop().call_later(self._between, self._show_newest)
        self._stream.flush()

    def note(self, text: str) -> None:
        """Print a permanent line above the progress."""
        previous = self._shown
        self.clear()
        self._stream.write(f"{escape(text)}\n")
        self._stream.flush()
        if self.rewrites:
            self.show(previous)
        else:
            self._shown = previous  # it is printed above, so do not repeat it

    def clear(self) -> None:
        """Clear the progress line before other output."""
        if self.rewrites and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        if self._pause is not None:
            self._pause.cancel()
        self._shown, self._newest, self._pause = "", "", None
