"""Parses command lines for tests as `lws` does."""

import shlex

import click

from lwsctl.cli import app


def read(line: str) -> click.Context:
    """Return the context of the command for the line. An unknown command, option or value is an error."""
    context = app.lws.make_context("lws", shlex.split(line)[1:])
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None, line
        context = command.make_context(name, rest, parent=context)
    return context
