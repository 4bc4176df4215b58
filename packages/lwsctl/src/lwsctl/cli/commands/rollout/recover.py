"""`lws recover`: recreates groups that reached their restart limit, and deletes pods kept for diagnosis."""

import click

from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.rollouts import rollouttargets
from lwsctl.cli.sharedoptions import DRY, dry_run_option
from lwsctl.cli.shell import completion
from lwsctl.cli.views.terminal import print_text
from lwsctl.model.groups import Group
from lwsctl.views.selection import Selection
from lwsctl.views.wording import places


@click.command("recover")
@click.argument("names", nargs=-1, required=True, metavar="LWS[/GROUP]...", shell_complete=completion.names)
@dry_run_option("Validate the change on the API server without persisting it.")
@click.pass_obj
def command(target: Target, names: tuple[str, ...], *, is_trial: bool) -> None:
    """Recreate groups that have reached the restart limit (maxGroupRestarts).

    If you specify only the LeaderWorkerSet, all of its groups that have reached the limit are recreated. The failed pods of
    the groups are deleted, together with their logs and statuses. To inspect the failed pods before they are deleted, use
    `lws explain` and `lws logs`.
    """
    selections = [targets.parse(name) for name in names]
    if any(selection.rank is not None for selection in selections):
        raise UsageError("ranks are not supported; specify LeaderWorkerSets or groups")

    async def run_command(session: Session) -> None:
        for selection in selections:
            print_text(await recover(session, selection, is_trial=is_trial))

    target.run(run_command)


async def recover(session: Session, selection: Selection, *, is_trial: bool = False) -> str:
    """Annotate the leaders of the selected groups, and return a description."""
    view = await targets.read_view(session, await rollouttargets.read(session, selection.name))
    exhausted = [group for group in view.groups if group.name == selection.group and group.is_over] or [
        group for group in view.groups if group.is_exhausted and selection.group is None
    ]
    if not exhausted:
        what = "has no exhausted groups" if selection.group is None else "is not exhausted"
        raise CommandError(f"{selection} {what}; no changes were made")
    for group in exhausted:
        await _annotate(session, group, is_trial=is_trial)
    word = "group" if len(exhausted) == 1 else "groups"
    return f"{selection.name} {word} {places([group.name for group in exhausted])} recovered{DRY if is_trial else ''}"


async def _annotate(session: Session, group: Group, *, is_trial: bool) -> None:
    leader = group.ranks[0]
    patch = {"metadata": {"uid": leader.uid, "annotations": {labels.RECOVER: "true"}}}
    write = session.client.try_patch if is_trial else session.client.patch
    await write(PODS, ObjectKey(session.namespace, leader.pod), patch, kind="merge", manager=rollouttargets.MANAGER)
