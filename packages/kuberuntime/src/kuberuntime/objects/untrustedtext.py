r"""Cleans text from tenants and applications in linear time, before it is analyzed or displayed.

| part of the text | becomes |
|---|---|
| escape sequences of terminals: colors, titles, links | nothing |
| a line that a progress bar overwrites: `10%\r20%` | its last state: `20%` |
| other control characters, marks of direction, invisible characters | visible: `\u202e`, `\x07` |
| line breaks and tabs | unchanged |
"""

import re
import unicodedata
from typing import Final

LONGEST: Final = 16 * 1024
"""The maximum number of characters of a message. A termination message has at most 4,096 bytes."""

HARMFUL: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""The Unicode categories control, format, surrogate, line separator and paragraph separator."""

ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # colors and cursor movements
    r"|\x1b\][^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[PX^_][^\x1b\n]{0,2048}\x1b\\"  # device control strings
    r"|\x1b[ -/]{0,4}[0-OQ-WYZ\\`-~]"  # character sets and keypad modes
)


def clean(text: str) -> str:
    r"""Remove escape sequences and overwritten parts of lines, and escape other control characters.

    >>> clean("\x1b[31mRuntimeError\x1b[0m: no GPU"), clean(" 1%|#\r 9%|##\n"), clean("a\u202eb")
    ('RuntimeError: no GPU', ' 9%|##\n', 'a\\u202eb')
    """
    if text.isprintable():
        return text
    if "\x1b" in text or "\x9b" in text:
        text = ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return visible_lines(text)


def visible_lines(text: str) -> str:
    """Escape text like `visible`, but preserve line breaks and tabs."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def shorten(text: str, most: int = LONGEST) -> str:
    r"""Shorten text with more than `most` characters to its start, its end, and the number of omitted characters.

    >>> shorten("0123456789", 6)
    '012\n… 4 characters omitted …\n789'
    """
    half = most // 2
    return (
        text if len(text) <= most else f"{text[:half]}\n… {len(text) - 2 * half} characters omitted …\n{text[-half:]}"
    )


def visible(text: str) -> str:
    r"""Escape control characters, directional marks and invisible characters.

    >>> visible("a\u202eb\x07\n")
    'a\\u202eb\\x07\\n'
    """
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode() if unicodedata.category(character) in HARMFUL else character
