"""`lws rollout diff`: shows the differences between two revisions as a unified YAML diff."""

import click

from leaderworkerset.decisions.revisioncontent import RevisionEntry, current_entry, previous_entry, revision_content
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.shell import completion
from lwsctl.cli.views import diffs
from lwsctl.cli.views.terminal import print_text


@click.command("diff")
@click.argument("name", metavar="LWS", shell_complete=completion.names)
@click.argument("first", type=click.IntRange(min=1), required=False, metavar="[A")
@click.argument("second", type=click.IntRange(min=1), required=False, metavar="[B]]")
@click.pass_obj
def command(target: Target, name: str, first: int | None, second: int | None) -> None:
    """Show the differences between two revisions. A defaults to the previous revision, and B to the current revision."""
    name = targets.set_name(name, "rollout")

    async def run_command(session: Session) -> tuple[RevisionEntry, RevisionEntry]:
        entries = await rollouttargets.read_history(session, name)
        old = previous_entry(entries) if first is None else rollouttargets.read_entry(session, name, entries, first)
        new = current_entry(entries) if second is None else rollouttargets.read_entry(session, name, entries, second)
        if old is None or new is None:
            raise CommandError(f"{name} has only one revision")
        return old, new

    old, new = target.run(run_command)
    lines = diffs.unified_diff(
        revision_content(old), revision_content(new), (f"{name} revision {old.number}", f"{name} revision {new.number}")
    )
    print_text(*(lines or [f"revisions {old.number} and {new.number} of {name} have the same content"]))
