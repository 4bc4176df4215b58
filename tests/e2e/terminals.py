"""Runs commands on pseudo-terminals, and emulates the terminal screens."""

import codecs
import difflib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from tests.e2e.harness import LWS, Shell

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


CONTROL = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|(\r)|(\n)")
UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*)?$")


class Screen:
    """The screen and the history of a terminal. It supports the control sequences of progress output and tables."""

    def __init__(self) -> None:
        self.lines = [""]
        self._row = self._column = 0
        self._rest = ""

    def feed(self, piece: str) -> None:
        """Process output that may end with an incomplete control sequence."""
        seen, position = self._rest + piece, 0
        cut = UNFINISHED.search(seen)
        end = cut.start() if cut else len(seen)
        self._rest = seen[end:]
        for control in CONTROL.finditer(seen, 0, end):
            self._write(seen[position : control.start()])
            self._obey(*control.groups())
            position = control.end()
        self._write(seen[position:end])

    def _write(self, text: str) -> None:
        line = self.lines[self._row]
        self.lines[self._row] = line[: self._column].ljust(self._column) + text + line[self._column + len(text) :]
        self._column += len(text)

    def _obey(self, argument: str | None, command: str | None, back: str | None, feed: str | None) -> None:
        if back:
            self._column = 0
        elif feed:
            self._row += 1
            self.lines += [""] * (self._row - len(self.lines) + 1)
        elif command == "A":
            self._row = max(self._row - (int(argument) if argument else 1), 0)
        elif command == "K":
            self.lines[self._row] = "" if argument == "2" else self.lines[self._row][: self._column]


class Terminal:
    """A process on a separate terminal, which has 24 lines of 100 columns unless it is resized."""

    def __init__(
        self, words: Sequence[str], shell: Shell, environment: Mapping[str, str], *, columns: int = 100
    ) -> None:
        self._near, far = pty.openpty()
        self.columns = columns
        self.resize(24, columns)
        self.seen = ""
        self._screen = Screen()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.process = subprocess.Popen(
            words, stdin=far, stdout=far, stderr=far, env=environment, cwd=shell.directory, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no thread runs here
        )  # fmt: skip
        os.close(far)

    def resize(self, lines: int, columns: int) -> None:
        """Resize the terminal."""
        fcntl.ioctl(self._near, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type a string."""
        os.write(self._near, text.encode())

    def until(self, pattern: str, seconds: float = 30) -> str:
        """Read until new output on the screen matches. Return that output."""
        begin, deadline = len(self.seen), time.monotonic() + seconds
        while not re.search(pattern, self.seen[begin:]):
            left = max(deadline - time.monotonic(), 0)
            assert select.select([self._near], [], [], left)[0], f"no {pattern!r} in {seconds} s: {self.seen[begin:]!r}"
            assert self._read(), f"ended without {pattern!r}: {self.seen[begin:]!r}"
        return self.seen[begin:]

    def end(self, seconds: float = 30) -> int:
        """Read until the process exits. Return the exit code."""
        while select.select([self._near], [], [], seconds)[0] and self._read():
            pass
        os.close(self._near)
        return self.process.wait(seconds)

    def screen(self) -> list[str]:
        """Return the lines on the screen, and the lines above it."""
        return [line.rstrip() for line in self._screen.lines]

    def until_screen(self, pattern: str, seconds: float = 60) -> list[str]:
        """Read until the screen matches. Return its lines."""
        wanted = re.compile(pattern, re.MULTILINE)
        self._until(lambda: wanted.search("\n".join(self.screen())), seconds, lambda: f"no {pattern!r} on the screen")
        return self.screen()

    def until_shows(self, lines: Sequence[str], seconds: float = 60) -> None:
        """Read until the screen contains exactly these lines, except for numbers that change over time."""
        self._until(
            lambda: timeless(self.screen()) == list(lines),
            seconds,
            lambda: "not on the screen:\n" + "\n".join(difflib.ndiff(lines, timeless(self.screen()))),
        )

    def _until(self, check: Callable[[], object], seconds: float, complaint: Callable[[], str]) -> None:
        deadline = time.monotonic() + seconds
        while not check():
            left = deadline - time.monotonic()
            is_there = left > 0 and select.select([self._near], [], [], left)[0] and self._read()
            assert is_there, "\n".join([complaint(), *self.screen()])

    def _read(self) -> bool:
        try:
            piece = os.read(self._near, 1 << 16)
        except OSError:  # the other end of the terminal is closed
            return False
        self.seen += piece.decode(errors="replace")
        self._screen.feed(self._decoder.decode(piece))
        return bool(piece)


AGES = re.compile(r"\b\d+[smh](\d+[smh])?\b")
RESTARTS = re.compile(r"\b(yes|no)  \d+")


def timeless(lines: Sequence[str]) -> list[str]:
    """Return the non-empty screen lines. Ages become `#`, restart counts `%`, and column gaps two spaces."""
    spaced = (re.sub(r" {3,}", "  ", AGES.sub("#", line)) for line in lines)
    return [RESTARTS.sub(r"\1  %", line) for line in spaced if line]


@contextmanager
def terminal(
    shell: Shell, *words: str, columns: int = 100, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Terminal]:
    """Run `lws` on a terminal."""
    made = Terminal([*LWS, *words], shell, {**shell.environment, **environment}, columns=columns)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()
