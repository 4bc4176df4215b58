"""`lws rollout`: the verbs of `kubectl rollout` and more, each imported only when it is used."""

from importlib import import_module
from typing import Final

import click

from leaderworkerset.cli import nearmisses

VERBS: Final = {
    "status": "Follow a rollout until it is done.",
    "history": "Show the revisions, and which groups run them.",
    "diff": "Show what differs between two revisions.",
    "undo": "Return to an earlier revision.",
    "pause": "Hold a rollout.",
    "resume": "Continue a paused rollout.",
    "restart": "Replace all groups, or some, by new ones of the same program.",
}

MODULES: Final = {"diff": "difference", "pause": "pausing", "resume": "pausing", "status": "rolloutstatus"}
"""The modules that are not named after their verb."""

ATTRIBUTES: Final = {"resume": "resume"}


class VerbGroup(click.Group):
    """Finds verbs in the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        """Return the names in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        """Import the verb."""
        if name not in VERBS:
            return None
        module = import_module(f"leaderworkerset.cli.commands.rollout.{MODULES.get(name, name)}")
        found: click.Command = getattr(module, ATTRIBUTES.get(name, "command"))
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; for an unknown one, suggest the most similar ones."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{nearmisses.hint(args[0], VERBS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """List the verbs without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group("rollout", cls=VerbGroup)
def command() -> None:
    """Follow and steer rollouts: what runs, what ran before, and how to return to it."""
