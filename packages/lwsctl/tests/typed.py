"""Parses command lines for tests as `lws` does."""

import shlex

import click

from lwsctl.cli import app
from lwsctl.cli.shell.argumentorder import hoist


def read(line: str) -> click.Context:
    """Return the context of the command for the line. An unknown command, option or value is an error."""
    root = click.Context(app.lws, info_name="lws")
    words = hoist(shlex.split(line)[1:], app.lws)
    at = next(at for at, word in enumerate(words) if not word.startswith("-") and words[at - 1 : at] != ["-n"])
    name, command, rest = app.lws.resolve_command(root, words[at:])
    while isinstance(command, click.Group):
        name, command, rest = command.resolve_command(root, rest)
    assert command is not None, line
    return command.make_context(name, rest, parent=root)
