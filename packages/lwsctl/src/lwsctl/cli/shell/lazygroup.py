"""Defines a command group that lists its commands in a table. A module is imported when its command is used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from kuberuntime import lightlogging, standardstreams
from lwsctl.cli import suggestions
from lwsctl.cli.commandtable import Command, Needs
from lwsctl.cli.process import garbagecollection
from lwsctl.cli.shell import hostplatform
from lwsctl.cli.shell.kubectlparser import cluster_options

CHANGES: Final = "change the manifest and run `lws apply`, or use kubectl"
INSTEAD: Final = {
    "annotate": CHANGES,
    "attach": "use `lws logs -f` to follow logs, or `lws exec -it` to start a shell",
    "build": "map an image to a directory with `--image NAME=DIR`, because images are not built",
    "create": "use `lws apply` to create objects, or `lws up` to create a cluster",
    "edit": CHANGES,
    "label": CHANGES,
    "load": "map an image to a directory with `--image NAME=DIR`, because images are not loaded",
    "patch": CHANGES,
    "ps": "use `lws get` to list groups, or `lws clusters` to list local clusters",
    "replace": "use `lws apply` to create and update objects",
    "set": CHANGES,
    "start": "use `lws up` to start a cluster",
    "stop": "use `lws down` to stop a cluster",
}
"""Alternatives to commands of kubectl, compose and kind."""


class LazyGroup(click.Group):
    """Finds commands in the table, and sets the exit code if stdout is closed."""

    def __init__(
        self,
        *words: Any,
        table: Mapping[str, Command],
        sections: Mapping[str, tuple[str, ...]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*words, **options)
        self.table = table
        self.sections = sections or {"Commands": tuple(table)}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        """Return the command names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        """Import the command. The list of all commands is generated from the table."""
        if name not in self.table:
            return None
        entry = self.table[name]
        if Needs.LOGS in entry.needs:
            lightlogging.load()
        module, attribute = entry.place
        command: click.Command = getattr(import_module(module), attribute)
        command.epilog = entry.epilog  # `restart` is also a subcommand of `rollout` with different examples
        return cluster_options(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the options or commands that start with the given prefix, without importing the commands."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(command.name, help=command.summary)
            for command in self.table.values()
            if command.name.startswith(incomplete)
        ]

    def make_context(self, *words: Any, **options: Any) -> click.Context:
        """Parse the arguments, or print the help."""
        with standardstreams.require_reader():
            return super().make_context(*words, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with standardstreams.require_reader():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. If it is unknown, suggest similar commands."""
        entry = self.table.get(args[0])
        if entry is None and not args[0].startswith("-"):
            instead = f": {INSTEAD[args[0]]}" if args[0] in INSTEAD else suggestions.hint(args[0], self.table)
            ctx.fail(f"No such command {args[0]!r}{instead}")
        if entry is not None and Needs.MACHINE in entry.needs:
            if not ctx.resilient_parsing and not {"-h", "--help"} & set(args):
                hostplatform.require_linux(args)
            ctx.with_resource(garbagecollection.disable_collection())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """List the commands by purpose, without importing them."""
        width = max(map(len, self.table))  # the same column width in all sections
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self.table[name].summary) for name in names])
