"""Programs on pseudo-terminals, and what stands on their screens."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from tests.e2e.harness import LWS, Shell

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program on a terminal of its own, 24 lines of 100 columns unless it is resized."""

    def __init__(
        self, words: Sequence[str], shell: Shell, environment: Mapping[str, str], *, columns: int = 100
    ) -> None:
        self._near, far = pty.openpty()
        self.columns = columns
        self.resize(24, columns)
        self.seen = ""
        self.process = subprocess.Popen(
            words, stdin=far, stdout=far, stderr=far, env=environment, cwd=shell.directory, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no thread runs here
        )  # fmt: skip
        os.close(far)

    def resize(self, lines: int, columns: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._near, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type."""
        os.write(self._near, text.encode())

    def until(self, pattern: str, seconds: float = 30) -> str:
        """Read until something new on the screen matches; return what was new."""
        begin, deadline = len(self.seen), time.monotonic() + seconds
        while not re.search(pattern, self.seen[begin:]):
            left = max(deadline - time.monotonic(), 0)
            assert select.select([self._near], [], [], left)[0], f"no {pattern!r} in {seconds} s: {self.seen[begin:]!r}"
            assert self._read(), f"ended without {pattern!r}: {self.seen[begin:]!r}"
        return self.seen[begin:]

    def end(self, seconds: float = 30) -> int:
        """Read to the end; return the exit code."""
        while select.select([self._near], [], [], seconds)[0] and self._read():
            pass
        os.close(self._near)
        return self.process.wait(seconds)

    def screen(self) -> list[str]:
        """Return the lines that stand on the screen, and those that scrolled out of it."""
        return drawn(self.seen)

    def until_screen(self, pattern: str, seconds: float = 60) -> list[str]:
        """Read until the screen matches; return its lines."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, "\n".join(self.screen()), re.MULTILINE):
            left = max(deadline - time.monotonic(), 0)
            shown = "\n".join(self.screen())
            assert select.select([self._near], [], [], left)[0], f"no {pattern!r} in {seconds} s on:\n{shown}"
            assert self._read(), f"ended without {pattern!r} on:\n{shown}"
        return self.screen()

    def _read(self) -> bool:
        try:
            piece = os.read(self._near, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)


CONTROL = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|(\r)|(\n)")


def drawn(seen: str) -> list[str]:
    """Return the lines that a terminal shows after this output: of all controls, those that progress and tables use."""
    lines: list[str] = [""]
    row = column = position = 0
    for control in CONTROL.finditer(seen):
        text = seen[position : control.start()]
        lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
        column, position = column + len(text), control.end()
        argument, command, back, feed = control.groups()
        count = int(argument) if argument and argument.isdecimal() else 1
        if back:
            column = 0
        elif feed:
            row += 1
            lines += [""] * (row - len(lines) + 1)
        elif command == "A":
            row = max(row - count, 0)
        elif command == "K":
            lines[row] = "" if argument == "2" else lines[row][:column]
    lines[row] = lines[row][:column].ljust(column) + seen[position:] + lines[row][column + len(seen) - position :]
    return [line.rstrip() for line in lines]


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
