"""Progress during a wait: one line that rewrites itself on a terminal, plain lines elsewhere."""

import os
import shutil
import sys
from typing import TextIO

from leaderworkerset.cli.views.terminal import escaped


class ProgressLine:
    """Shows what a command waits for, on standard error; an unchanged text is shown once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self.rewrites = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = ""

    def show(self, text: str) -> None:
        """Show what the command waits for now."""
        text = escaped(text)
        if text == self._shown or not text:
            return
        self._shown = text
        if self.rewrites:
            width = shutil.get_terminal_size().columns
            self._stream.write(f"\r\x1b[K{text[: width - 1]}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def note(self, text: str) -> None:
        """Print a line that stays, above the progress."""
        shown = self._shown
        self.clear()
        self._stream.write(f"{escaped(text)}\n")
        self._stream.flush()
        if self.rewrites:
            self.show(shown)
        else:
            self._shown = shown  # it is above, and not to be repeated

    def clear(self) -> None:
        """Clear the line for later output."""
        if self.rewrites and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = ""
