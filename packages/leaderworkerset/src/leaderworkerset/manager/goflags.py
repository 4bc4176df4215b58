"""Parses flags like Go's `flag` package, with one or two dashes, `-f=v` or `-f v`, and booleans `-f` or `-f=false`.

Input: arguments and a table of flags. Output: the specified values, so that a caller can distinguish them from
defaults. Errors have Go's messages. Unlike in Go, an argument that is not a flag is rejected, because Go parses
`--leader-elect false` as true.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

BOOLEANS: Final = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


class FlagError(Exception):
    """The flags are invalid. The message is the same as in Go."""


class HelpRequestedError(Exception):
    """`-h` or `--help` was specified, and there is no flag with that name."""


class Flag(Struct, frozen=True):
    """A flag. `parse` converts its value or raises `ValueError`."""

    name: str
    parse: Callable[[str], Any]
    usage: str
    default: str = ""

    @property
    def is_boolean(self) -> bool:
        """Return whether the flag does not require a value."""
        return self.parse is boolean


def boolean(text: str) -> bool:
    """Parse a boolean."""
    if text not in BOOLEANS:
        raise ValueError("parse error")
    return BOOLEANS[text]


def parse(arguments: Sequence[str], flags: Sequence[Flag]) -> Mapping[str, Any]:
    """Return the values of all specified flags. If a flag is repeated, the last value is used."""
    table = {flag.name: flag for flag in flags}
    values: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, text = word.lstrip("-").partition("=")
        if not word.startswith("-") or word in {"-", "--"}:
            raise FlagError(f"unexpected argument {word!r}. Specify values of flags as --flag=value")
        if not name or word.startswith("---"):
            raise FlagError(f"bad flag syntax: {word}")
        flag = table.get(name)
        if flag is None:
            if name in {"h", "help"}:
                raise HelpRequestedError
            raise FlagError(f"flag provided but not defined: -{name}")
        if not equals:
            text = "true" if flag.is_boolean else _next_value(rest, name)
        values[name] = _parse(flag, text)
    return values


def usage(flags: Sequence[Flag]) -> str:
    """Return the help text of all flags."""
    return "\n".join(f"  --{flag.name}{_default(flag)}\n        {flag.usage}" for flag in flags)


def _default(flag: Flag) -> str:
    return f" (default {flag.default})" if flag.default else ""


def _next_value(rest: list[str], name: str) -> str:
    if not rest:
        raise FlagError(f"flag needs an argument: -{name}")
    return rest.pop(0)


def _parse(flag: Flag, text: str) -> Any:
    try:
        return flag.parse(text)
    except ValueError as error:
        kind = "boolean value" if flag.is_boolean else "value"
        raise FlagError(f'invalid {kind} "{text}" for flag -{flag.name}: {error}') from error
