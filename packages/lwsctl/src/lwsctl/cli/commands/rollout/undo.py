"""`lws rollout undo`: restores the template of a previous revision of a LeaderWorkerSet."""

import click

from leaderworkerset.decisions.revisioncontent import previous_entry
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts import rollouttargets, setchange
from lwsctl.cli.rollouts.setchange import Change
from lwsctl.cli.sharedoptions import dry_run_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views.terminal import print_text
from lwsctl.rollout import patches


@click.command("undo")
@click.argument("name", metavar="LWS", shell_complete=completion.names)
@click.option(
    "--to-revision",
    "number",
    type=click.IntRange(min=1),
    metavar="N",
    help="Revision to roll back to. Defaults to the previous revision.",
)
@dry_run_option("Show the fields and groups that would change, without persisting the change.")
@click.pass_obj
def command(target: Target, name: str, number: int | None, *, is_trial: bool) -> None:
    """Roll back to a previous revision. The groups are updated in the same way as after any other template change.

    Only the fields that a revision contains are changed: leaderWorkerTemplate and networkConfig. If the rollout is paused,
    you must resume it before you can roll back.
    """
    name = targets.set_name(name, "rollout")

    print_text(target.run(lambda session: undo(session, name, number, is_trial=is_trial)))


async def undo(session: Session, name: str, number: int | None = None, *, is_trial: bool = False) -> str:
    """Write or validate the template patch. Return a description."""
    return await setchange.apply_change(session, lambda: undo_change(session, name, number), is_trial=is_trial)


async def undo_change(session: Session, name: str, number: int | None) -> Change:
    """Return the change that restores a previous revision."""
    obj = await rollouttargets.read_writable(session, name)
    if patches.is_paused(obj):
        raise CommandError(
            f"no changes were made, because the rollout of {name} is paused; run `{session.lws} rollout resume {name}` first"
        )
    entries = await rollouttargets.entries(session, await targets.read_view(session, obj))
    entry = previous_entry(entries) if number is None else rollouttargets.read_entry(session, name, entries, number)
    if entry is None:
        raise CommandError(f"{name} has no previous revision; no changes were made")
    if entry.is_current:
        return Change(lws=obj, done=f"{name} already has revision {entry.number}")
    done = f"{name} rolled back to revision {entry.number}"
    return Change(lws=obj, done=done, patch=patches.restore_patch(obj, entry), kind="json")
