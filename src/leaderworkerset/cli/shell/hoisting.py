"""Options that select a cluster may stand before or after a command, as with kubectl: they are moved to the front."""

from collections.abc import Sequence
from typing import Final

import click

VALUE_OPTIONS: Final = ("-n", "--namespace", "--context", "--kubeconfig")
LOCAL: Final = "--local"


def hoist(words: Sequence[str], root: click.Command) -> list[str]:
    """Move the options that select a cluster in front of the command of `root`; `--` ends the search.

    A word that is the value of one of the command's own options stays. As with kubectl, `-n=prod` means `-n prod`.

    >>> from leaderworkerset.cli.app import lws
    >>> hoist(["get", "web", "-n", "prod", "--local"], lws)
    ['-n', 'prod', '--local=default', 'get', 'web']
    >>> hoist(["exec", "web/0", "--", "ls", "-n"], lws)
    ['exec', 'web/0', '--', 'ls', '-n']
    >>> hoist(["logs", "web", "--grep", "--local", "-nprod"], lws)
    ['-n', 'prod', 'logs', 'web', '--grep', '--local']
    >>> hoist(["up", "--stub", "demo"], lws)
    ['up', '--stub=missing', 'demo']
    """
    front: list[str] = []
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return [*front, *rest, word, *left]
        if not word.startswith("-") or _awaits_value(rest, root):
            rest.append(word)
        elif word.startswith("-n") and word != "-n":
            front += ["-n", word[2:].removeprefix("=")]
        elif word[2:3] == "=" and _awaits_value([*rest, word[:2]], root):
            rest += [word[:2], word[3:]]
        elif word == LOCAL:
            front.append(f"{LOCAL}=default")
        elif word == "--stub":
            rest.append("--stub=missing")  # its value is optional: the next word is none
        elif word in VALUE_OPTIONS and left:
            front += [word, left.pop(0)]
        elif word.startswith((f"{LOCAL}=", *(f"{option}=" for option in VALUE_OPTIONS))):
            front.append(word)
        else:
            rest.append(word)
    return front + rest


def _awaits_value(words: Sequence[str], root: click.Command) -> bool:
    """Return whether the last word is an option of the command that takes the next word as its value."""
    if not words or not words[-1].startswith("-"):
        return False
    command: click.Command | None = root
    context, awaits = click.Context(root), False
    for word in words:
        if awaits or command is None:
            awaits = False
        elif word.startswith("-"):
            options = (one for one in command.params if isinstance(one, click.Option) and word in one.opts)
            awaits = any(not one.is_flag and not one.count for one in options)
        elif isinstance(command, click.Group):
            command = command.get_command(context, word)
    return awaits
