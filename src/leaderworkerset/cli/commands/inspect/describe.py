"""`lws describe`: all that is known of a LeaderWorkerSet, a group or a rank, on one page."""

import asyncio
from typing import Final

import click

from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.commands.inspect import events
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import description
from leaderworkerset.cli.views.description import Described
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.observation import explaining
from leaderworkerset.observation.logs import last_lines
from leaderworkerset.views.groups import View
from leaderworkerset.views.history import Happening
from leaderworkerset.views.outcome import failures
from leaderworkerset.views.selection import Selection, narrow

MOST_LOGS: Final = 3
"""So many failed containers are quoted: hundreds would be hundreds of calls of kubelets."""

TAIL: Final = 10
"""So many lines of each."""


@click.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="LWS[/GROUP[/RANK]]...", shell_complete=completing.names)
@click.pass_obj
def command(target: Target, names: tuple[str, ...]) -> None:
    """Describe a LeaderWorkerSet, a group or a rank: spec, status, ranks, conditions, events, and logs of what failed."""
    chosen = [targets.parse(name) for name in names]

    async def act() -> None:
        async with target.session() as session:
            for at, one in enumerate(chosen):
                for line in [*([""] if at else []), *await describe(session, one)]:
                    say(line)

    asyncio.run(act())


async def describe(session: Session, chosen: Selection) -> list[str]:
    """Return the lines of one description."""
    lws = await targets.find(session, chosen.name)
    (whole,) = await explaining.explain(session.client, [await targets.view_of(session, lws)], session.namespace)
    view = narrow(whole, chosen)
    if chosen.group is not None and not any(group.ranks for group in view.groups):
        size = max((len(group.ranks) for group in whole.groups), default=0)
        raise CommandError(f"{chosen} is not there: {whole.name} has {len(whole.groups)} groups of {size} ranks")
    found = [await last_lines(session.client, failed, TAIL) for failed in failures(view)[:MOST_LOGS]]
    happened = await happenings(session, whole, chosen)
    shown = Described(chosen=chosen, view=view, events=happened, logs=[text for text in found if text])
    return description.lines(shown, SystemClock().now())


async def happenings(session: Session, view: View, chosen: Selection) -> list[Happening]:
    """Read the events, none where the user may not."""
    pods = [rank.object for group in view.groups for rank in group.ranks if rank.object is not None]
    try:
        return await events.read(session, view.object, pods, chosen)
    except ForbiddenError:
        return []
