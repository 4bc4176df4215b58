"""`lws describe`: all facts about a LeaderWorkerSet, a group or a rank, on one page."""

from typing import Final

import click

from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from leaderworkerset.api.resources import DISAGGREGATED_SETS
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.sets import eventlog
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import description
from leaderworkerset.cli.views.description import Described, DescribedSet
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.observation import lists
from leaderworkerset.observation.lists import Lists
from leaderworkerset.observation.podlogs import last_lines
from leaderworkerset.views.disaggregation import SetView, set_view
from leaderworkerset.views.events import eventhistory
from leaderworkerset.views.events.eventhistory import Happening
from leaderworkerset.views.groups import View
from leaderworkerset.views.outcome import failures
from leaderworkerset.views.selection import Selection, narrow

MOST_LOGS: Final = 3
"""The maximum number of failed containers that are quoted: hundreds would be hundreds of calls of kubelets."""

TAIL: Final = 10
"""The number of quoted lines of each."""


@click.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="LWS[/GROUP[/RANK]]|SET...", shell_complete=completing.names)
@click.pass_obj
def command(target: Target, names: tuple[str, ...]) -> None:
    """Describe a LeaderWorkerSet, a group or a rank: spec, status, ranks, conditions, events, logs of failed containers.

    For a DisaggregatedSet: its roles, its revisions and slices, and the LeaderWorkerSets beneath it.
    """
    chosen = [targets.parse(name) for name in names]

    async def act(session: Session) -> None:
        for at, one in enumerate(chosen):
            say(*[*([""] if at else []), *await describe(session, one)])

    target.run(act)


async def describe(session: Session, chosen: Selection) -> list[str]:
    """Return the lines of one description."""
    resource, lws = await targets.find_either(session, chosen.name)
    if resource == DISAGGREGATED_SETS:
        return await describe_set(session, lws, chosen)
    (whole,) = await lists.with_evidence(
        Lists(session.client), [await targets.view_of(session, lws)], session.namespace
    )
    targets.refuse_missing(whole, chosen)
    view = narrow(whole, chosen)
    found = [await last_lines(session.client, failed, TAIL) for failed in failures(view)[:MOST_LOGS]]
    happened = await happenings(session, whole, chosen)
    shown = Described(
        chosen=chosen, view=view, events=happened, logs=[text for text in found if text], lws=addressed(session)
    )
    return description.lines(shown, SystemClock().now())


async def describe_set(session: Session, obj: JSONObject, chosen: Selection) -> list[str]:
    """Return the lines of the description of a DisaggregatedSet."""
    plain = await targets.views_of(session, await targets.parts_of(session, chosen))
    view = set_view(obj, await lists.with_evidence(Lists(session.client), plain, session.namespace))
    failed = [one for part in view.parts for one in failures(part.view)][:MOST_LOGS]
    logs = [await last_lines(session.client, one, TAIL) for one in failed]
    happened = await set_happenings(session, view)
    shown = DescribedSet(view=view, events=happened, logs=[text for text in logs if text], lws=addressed(session))
    return description.set_lines(shown, SystemClock().now())


def addressed(session: Session) -> str:
    """Return the words by which a hint calls `lws` for the same cluster and namespace."""
    return f"{session.lws} -n {session.namespace}"


async def set_happenings(session: Session, view: SetView) -> list[Happening] | None:
    """Read the events of a DisaggregatedSet and its objects, None if the user may not."""
    try:
        listing = await session.client.list(CORE_EVENTS, namespace=session.namespace)
    except ForbiddenError:
        return None
    names = [part.view.name for part in view.parts]
    parts = [
        eventhistory.History(part.view.object, part.view.pods, [name for name in names if name != part.view.name])
        for part in view.parts
    ]
    return eventhistory.of_set(view.object, parts, listing.items)


async def happenings(session: Session, view: View, chosen: Selection) -> list[Happening] | None:
    """Read the events, None if the user may not."""
    try:
        return await eventlog.read(session, view.object, view.pods, chosen)
    except ForbiddenError:
        return None
