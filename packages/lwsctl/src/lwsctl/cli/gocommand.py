"""Defines commands that run a cluster component and have flags in Go syntax."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from leaderworkerset.decisions.managercommand import Flag, FlagError, HelpRequestedError, flags_usage, parse_flags
from lwsctl.cli import errors


class GoCommand(click.Command):
    """A command whose arguments are not parsed by click. `flags` returns new flags for each parsing."""

    def __init__(self, *args: Any, flags: Callable[[], Sequence[Flag]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._flags = flags

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return all arguments without changes."""
        ctx.params["words"] = tuple(args)
        ctx.args = []
        return []

    def flags_help(self) -> str:
        """Return the list of flags with their descriptions."""
        return flags_usage(self._flags())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes it
        """Write the list of flags to the help."""
        with formatter.section("Flags"):
            formatter.write(self.flags_help() + "\n")


def read(ctx: click.Context, arguments: Sequence[str], flags: Sequence[Flag]) -> Mapping[str, Any] | None:
    """Return the specified flags, or None if help was requested and printed. Raise `UsageError` for unknown flags."""
    try:
        return parse_flags(arguments, flags)
    except HelpRequestedError:
        click.echo(ctx.get_help())
        return None
    except FlagError as error:
        raise errors.UsageError(str(error)) from error
