"""Parses command lines in tests in the same way as `lws`."""

import shlex

import click

from lwsctl.cli import app


def read(line: str) -> click.Context:
    """Return the command context of the line. Raise an error for unknown commands, options or values."""
    context = app.lws.make_context("lws", shlex.split(line)[1:])
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None, line
        context = command.make_context(name, rest, parent=context)
    return context
