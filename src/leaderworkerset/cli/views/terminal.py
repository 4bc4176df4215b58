r"""Text of a cluster on a terminal: characters that a terminal would interpret are escaped. Logs stay unchanged.

kubectl writes ESC as `^[` and CR as `\r` in its tables (`printers/terminal.go`). Here all other control characters are
escaped, too, and characters that change the direction of text or are invisible.
"""

import unicodedata
from typing import Final

import click

HARMFUL: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode: controls, formats, halves of surrogate pairs, line and paragraph separators."""

NAMED: Final = {"\x1b": "^[", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    r"""Return the text with every control character escaped.

    >>> escaped("\x1b[2J\a done\r\n")
    '^[[2J\\x07 done\\r\\n'
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def lines(text: str) -> str:
    """Return a text of several lines, each of them escaped."""
    return "\n".join(map(escaped, text.split("\n")))


def say(text: str, *, err: bool = False) -> None:
    """Print lines whose text may come from a cluster, on standard output or standard error."""
    click.echo(lines(text), err=err)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in HARMFUL:
        return character
    return NAMED.get(character) or character.encode("unicode_escape").decode()
