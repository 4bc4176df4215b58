"""`lws describe`: shows details about a LeaderWorkerSet, group or rank."""

from collections.abc import Awaitable
from typing import Final

import click

from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from leaderworkerset.api.eventvalue import EventValue
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.sets.shown import GetRequest, observe
from lwsctl.cli.shell import completion
from lwsctl.cli.views import description
from lwsctl.cli.views.description import Described
from lwsctl.cli.views.terminal import print_text
from lwsctl.model.disaggregatedset import Shown, leaderworkersets
from lwsctl.model.failedcontainers import failed_containers
from lwsctl.observation import eventlog
from lwsctl.observation.podlogs import last_lines
from lwsctl.views.selection import Selection, narrow

MOST_LOGS: Final = 3
"""The maximum number of failed containers whose logs are quoted. Each log requires a request to a kubelet."""

TAIL: Final = 10
"""The number of log lines to quote for each container."""


@click.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="LWS[/GROUP[/RANK]]|SET...", shell_complete=completion.names)
@click.pass_obj
def command(target: Target, names: tuple[str, ...]) -> None:
    """Show details of a LeaderWorkerSet, group, rank or DisaggregatedSet.

    The details include the spec, the status, the events, and the logs of failed containers. For a DisaggregatedSet, they
    also include the roles, revisions, slices and LeaderWorkerSets.
    """
    selections = [targets.parse(name) for name in names]

    async def run_command(session: Session) -> None:
        for at, selection in enumerate(selections):
            print_text(*[*([""] if at else []), *await describe(session, selection)])

    target.run(run_command)


async def describe(session: Session, selection: Selection) -> list[str]:
    """Return the lines of one description."""
    _, cluster = await observe(session, GetRequest((selection,)))
    view: Shown
    if cluster.sets:
        view = cluster.sets[0]
        happened = await _list_events(eventlog.read_disaggregatedset(session.client, view))
    else:
        found_view = cluster.views[0]
        view = narrow(found_view, selection)
        happened = await _list_events(eventlog.read(session.client, found_view, selection))
    failed = [failure for part in leaderworkersets([view]) for failure in failed_containers(part)][:MOST_LOGS]
    texts = [await last_lines(session.client, failure, TAIL) for failure in failed]
    lws = f"{session.lws} -n {session.namespace}"
    content = Described(selection=selection, view=view, events=happened, logs=[text for text in texts if text], lws=lws)
    return description.lines(content, SystemClock().now())


async def _list_events(reading: Awaitable[list[EventValue]]) -> list[EventValue] | None:
    """Return the events, or None if the user does not have permission to list them."""
    try:
        return await reading
    except ForbiddenError:
        return None
