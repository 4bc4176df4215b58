"""`lws rollout undo`: give a LeaderWorkerSet the template of an earlier revision."""

import asyncio

import click

from kuberuntime.objects import meta
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.commands.rollout import subjects
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.steering import changes, pasts


@click.command("undo")
@click.argument("name", metavar="LWS", shell_complete=completing.names)
@click.option("--to-revision", "number", type=click.IntRange(min=1), metavar="N", help="Otherwise the one before.")
@click.pass_obj
def command(target: Target, name: str, number: int | None) -> None:
    """Return to the template of an earlier revision; groups roll as for any change of the template.

    Only what a revision holds is changed: leaderWorkerTemplate and networkConfig. A paused rollout must be resumed first.

    \b
    lws rollout undo web
    lws rollout undo web --to-revision 3
    """  # noqa: D301 - click reads the \b
    name = subjects.named(name)

    async def act() -> str:
        async with target.session() as session:
            return await undo(session, name, number)

    say(asyncio.run(act()))


async def undo(session: Session, name: str, number: int | None = None) -> str:
    """Patch the template; return what was done."""
    return await subjects.persistently(lambda: _undo(session, name, number))


async def _undo(session: Session, name: str, number: int | None) -> str:
    obj = await subjects.writable(session, name)
    if changes.is_paused(obj):
        raise CommandError(
            f"the rollout of {name} is paused: nothing was changed; resume it first: `{session.lws} rollout resume {name}`"
        )
    found = await subjects.entries(session, await subjects.view_of(session, obj))
    entry = pasts.before(found) if number is None else subjects.entry_of(session, name, found, number)
    if entry is None:
        raise CommandError(f"{name} has no earlier revision: nothing was changed")
    if entry.is_current:
        return f"{name} is of revision {entry.number} already"
    patch = changes.restoring(obj, entry)
    await session.client.patch(LEADERWORKERSETS, meta.key(obj), patch, kind="json", manager=subjects.MANAGER)
    return f"{name} rolled back to revision {entry.number}"
