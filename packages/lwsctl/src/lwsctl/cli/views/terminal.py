r"""Prints cluster data on a terminal. Control characters are escaped, except in logs.

kubectl writes ESC as `^[` and CR as `\r` in its tables (`printers/terminal.go`). All other control characters are also
escaped, as well as characters that change the direction of text or are invisible.
"""

import os
import re
import sys
from typing import Final, TextIO

import click

from kuberuntime.objects import untrustedtext

NAMED: Final = {"\x1b": "^[", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str) -> str:
    r"""Return the string with all control characters escaped.

    >>> escape("\x1b[2J\a done\r\n")
    '^[[2J\\x07 done\\r\\n'
    """
    if text.isprintable():
        return text
    return "".join(NAMED.get(character) or untrustedtext.visible(character) for character in text)


def lines(text: str) -> str:
    """Return a multiline string with each line escaped."""
    return "\n".join(map(escape, text.split("\n")))


def print_text(*texts: str, err: bool = False) -> None:
    """Print strings that may come from a cluster on stdout or stderr. Strings may have multiple lines."""
    for text in texts:
        click.echo(lines(text), err=err)


def print_states(*texts: str) -> None:
    """Print strings like `print_text`. On a terminal, states are colored."""
    is_painted = is_colored(sys.stdout)
    for text in texts:
        click.echo(colorize(lines(text)) if is_painted else lines(text))


COLORS: Final = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
"""ANSI color codes for groups, and for the ranks of a group."""


def is_colored(stream: TextIO) -> bool:
    """Return whether the output to this stream is colored."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int | None:
    """Return the terminal width of a stream, or None if it is not a terminal or its width is unknown."""
    return (os.get_terminal_size(stream.fileno()).columns or None) if stream.isatty() else None


RED, YELLOW, GREEN = 31, 33, 32
STATES: Final = (
    (RED, re.compile(
        r"(?<![-\w])(?:Error|Failed|Evicted|Unknown|OOMKilled|NodeLost|Unschedulable|CrashLoopBackOff|ImagePullBackOff|"
        r"(?:Err|Run|Create|Invalid|Post|Pre)\w*(?:Error|Pull|ImageName)|\w+(?:NotMapped|NotFound|Missing)|LWS-E\d{3})(?![-\w])"
    )),
    (YELLOW, re.compile(r"(?<![-\w])(?:Pending|ContainerCreating|PodInitializing|Terminating|not created|Init:\d+/\d+)(?![-\w])")),
    (GREEN, re.compile(r"(?<![-\w])(?:Running|Ready|[Cc]ompleted)(?![-\w])")),
)  # fmt: skip
"""The colors of states in a table or a sentence."""


def colorize(text: str) -> str:
    r"""Return an escaped string with colored states.

    >>> colorize("web-0   Pending   no")
    'web-0   \x1b[33mPending\x1b[0m   no'
    """
    for color, pattern in STATES:
        text = pattern.sub(f"\x1b[{color}m\\g<0>\x1b[0m", text)
    return text


class Painter:
    """Colors words, or returns them without color."""

    def __init__(self, stream: TextIO) -> None:
        self._wanted = is_colored(stream)

    def rank(self, text: str, group: int | str, rank: int | str = 0) -> str:
        """Color the name of a rank. The color differs from adjacent ranks and groups."""
        if not self._wanted or not isinstance(group, int) or not isinstance(rank, int):
            return text
        return f"\x1b[{COLORS[(group + rank) % len(COLORS)]}m{text}\x1b[0m"
