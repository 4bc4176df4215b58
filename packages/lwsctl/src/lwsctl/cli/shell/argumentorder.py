"""Converts command lines in kubectl style for click: cluster options, kinds before names, and `--wait=false`."""

from collections.abc import Sequence
from typing import Final

import click

VALUE_OPTIONS: Final = ("-n", "--namespace", "--context", "--kubeconfig")
LOCAL: Final = "--local"
WRITTEN_OUT: Final = {"--stub": "--stub=missing", "--wait=true": "--wait", "--wait=false": "--no-wait"}
"""Replacements of options for click. The value of --stub is optional, and never the next word."""


KINDS: Final = frozenset({"lws", "leaderworkerset", "leaderworkersets", "disaggregatedset", "disaggregatedsets"})
"""Kinds before a name, with or without API group, which are ignored because all names have these kinds."""

EXEC_WORDS: Final = 3
"""`exec`, the rank, and the first word of the command."""

OF_ALL: Final = frozenset({"get", "explain", "tree"})
"""Commands that show all objects if no name is specified."""


def hoist(words: Sequence[str], root: click.Command) -> list[str]:
    """Move the options that select a cluster before the command of `root`. The search stops at `--`.

    A word that is the value of one of the command's own options stays. As with kubectl, `-n=prod` means `-n prod`.

    >>> from lwsctl.cli.app import lws
    >>> hoist(["get", "web", "-n", "prod", "--local"], lws)
    ['-n', 'prod', '--local=default', 'get', 'web']
    >>> hoist(["apply", "--dry-run", "--local", "-f", "web.yaml"], lws)
    ['--local=default', 'apply', '--dry-run', '-f', 'web.yaml']
    >>> hoist(["exec", "web/0", "--", "ls", "-n"], lws)
    ['exec', 'web/0', '--', 'ls', '-n']
    >>> hoist(["exec", "-it", "web/0", "-c", "main", "ls", "-n"], lws)
    ['exec', '-it', 'web/0', '-c', 'main', '--', 'ls', '-n']
    >>> hoist(["logs", "web", "--grep", "--local", "-nprod"], lws)
    ['-n', 'prod', 'logs', 'web', '--grep', '--local']
    >>> hoist(["up", "--stub", "demo"], lws)
    ['up', '--stub=missing', 'demo']
    >>> hoist(["delete", "lws", "web", "--wait=false"], lws), hoist(["get", "lws"], lws), hoist(["wait", "lws"], lws)
    (['delete', 'web', '--no-wait'], ['get'], ['wait', 'lws'])
    >>> hoist(["delete", "lws/web", "api"], lws)
    ['delete', 'lws/web', 'api']
    """
    front: list[str] = []
    rest: list[str] = []
    left = _separated(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return [*front, *_without_kind(rest, root), word, *left]
        if not word.startswith("-") or _awaits_value(rest, root, is_optional=False):
            rest.append(word)
        elif word.startswith("-n") and word != "-n":
            front += ["-n", word[2:].removeprefix("=")]
        elif word[2:3] == "=" and _awaits_value([*rest, word[:2]], root):
            rest += [word[:2], word[3:]]
        elif word == LOCAL:
            front.append(f"{LOCAL}=default")
        elif word in WRITTEN_OUT:
            rest.append(WRITTEN_OUT[word])
        elif word in VALUE_OPTIONS and left:
            front += [word, left.pop(0)]
        elif word.startswith((f"{LOCAL}=", *(f"{option}=" for option in VALUE_OPTIONS))):
            front.append(word)
        else:
            rest.append(word)
    return front + _without_kind(rest, root)


def _separated(words: Sequence[str]) -> list[str]:
    """Insert `--` before the command of `exec`, so that its options are not parsed as options of lws."""
    left, takes_value = list(words), {*VALUE_OPTIONS, "-c", "--container"}
    places = [
        at for at, word in enumerate(left) if not word.startswith("-") and (at == 0 or left[at - 1] not in takes_value)
    ]
    if len(places) < EXEC_WORDS or left[places[0]] != "exec" or "--" in left[: places[2]]:
        return left
    return [*left[: places[2]], "--", *left[places[2] :]]


def _without_kind(words: list[str], root: click.Command) -> list[str]:
    """Remove a kind before names, and a single kind if it selects all objects.

    `lws/lws` is the set with the name of its kind.
    """
    if not any(map(_is_kind, words)):
        return words
    command: click.Command | None = root
    context, places = click.Context(root), list[int]()
    for place, word in enumerate(words):
        if word.startswith("-") or _awaits_value(words[:place], root):
            continue
        if isinstance(command, click.Group):
            command = command.get_command(context, word)
        elif command is not None:
            places.append(place)
    if command is None or not places or not _is_kind(words[places[0]]):
        return words
    if not places[1:] and command.name not in OF_ALL:
        return words
    return [word for place, word in enumerate(words) if place != places[0]]


def _is_kind(word: str) -> bool:
    return "/" not in word and word.partition(".")[0] in KINDS


def _awaits_value(words: Sequence[str], root: click.Command, *, is_optional: bool = True) -> bool:
    """Return whether the last word is an option of the command whose value is the next word.

    An optional value never begins with `-`: do not count it with `is_optional=False`.
    """
    if not words or not words[-1].startswith("-"):
        return False
    command: click.Command | None = root
    context, awaits = click.Context(root), False
    for word in words:
        if awaits or command is None:
            awaits = False
        elif word.startswith("-"):
            options = (param for param in command.params if isinstance(param, click.Option) and word in param.opts)
            awaits = any(
                not option.is_flag and not option.count and (is_optional or not isinstance(option.flag_value, str))
                for option in options
            )
        elif isinstance(command, click.Group):
            command = command.get_command(context, word)
    return awaits
