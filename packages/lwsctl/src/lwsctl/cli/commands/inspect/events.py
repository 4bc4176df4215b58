"""`lws events`: lists events of a LeaderWorkerSet, group or rank by time, including events of deleted pods."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import click
from msgspec import Struct

from kuberuntime.client.requests import Selection as Query
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.resources import CORE_EVENTS, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.eventvalue import EventValue
from lwsctl.cli import sharedoptions, targets
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.shell import completion
from lwsctl.cli.views import eventlines, formats, output
from lwsctl.cli.views.terminal import print_text
from lwsctl.observation import eventlog
from lwsctl.views import eventhistory
from lwsctl.views.eventhistory import History
from lwsctl.views.selection import Selection

DOCUMENTS = (None, "json", "yaml")
"""The output formats with stable field names. Other formats print API objects."""


class EventsRequest(Struct, frozen=True):
    """The selected events and the output format."""

    selection: Selection
    form: str | None
    warnings: bool
    length: int | None

    def select(self, happened: Iterable[EventValue]) -> list[EventValue]:
        """Return the selected events."""
        events = [event for event in happened if event.is_warning or not self.warnings]
        return (
            events
            if self.length is None
            else eventhistory.recent_events(events, timedelta(seconds=self.length), SystemClock().now())
        )


@click.command("events")
@click.argument("name", metavar="LWS[/GROUP[/RANK]]", shell_complete=completion.names)
@click.option("-w", "--watch", "watches", is_flag=True, help="After listing the existing events, watch for new events.")
@click.option("--warnings", is_flag=True, help="Show only events of type Warning.")
@click.option(
    "--since",
    "length",
    metavar="DURATION",
    type=sharedoptions.age,
    help="Show only events newer than a relative duration like 30s, 5m or 2h. Defaults to all events.",
)
@formats.output_option("Output format. Defaults to text. With json, each event is printed on one line.")
@click.pass_obj
def command(
    target: Target, /, name: str, *, watches: bool, warnings: bool, length: int | None, form: str | None
) -> None:
    """List the events of a LeaderWorkerSet, a group or a rank, sorted by time.

    Events of deleted pods are included until the events expire, by default after one hour. The formats name, jsonpath and
    custom-columns print API objects, as in kubectl.
    """
    if watches and form not in DOCUMENTS:
        raise UsageError(f"-o {form} cannot be combined with --watch; use -o json or -o yaml")
    request = EventsRequest(targets.parse(name), form, warnings, length)
    asyncio.run(watch(target, request) if watches else show(target, request))


async def show(target: Target, request: EventsRequest) -> None:
    """Print the existing events."""
    async with target.session() as session:
        view = await targets.read_view(session, await targets.find(session, request.selection.name))
        events = request.select(await eventlog.read(session.client, view, request.selection))
    if request.form not in DOCUMENTS:
        click.echo(
            formats.render_objects(str(request.form), [event.stored for event in events], is_one=False), nl=False
        )
    elif request.form:
        for event in events:
            click.echo(event_document(event, request.form))
    elif events:
        print_text(*eventlines.event_table(events, SystemClock().now()))
    else:
        click.echo(f"{request.selection} has no events.", err=True)


def event_document(event: EventValue, form: str) -> str:
    """Return an event as a document in the output format."""
    document = eventhistory.document(event)
    return output.as_json_line(document) if form == "json" else f"---\n{output.as_yaml(document)}"


async def watch(target: Target, request: EventsRequest) -> None:
    """Print the existing events, and then new events. Print an event again if its count increases."""
    from kuberuntime.cache.informer import Informer
    from lwsctl.cli.watchwarnings import following

    async with target.session() as session:
        lws = await targets.find(session, request.selection.name)
        names = await eventlog.list_names(session.client, session.namespace)
        pods = Informer(session.client, Query(PODS, session.namespace, f"{labels.NAME}={meta.name(lws)}"))
        events = Informer(session.client, Query(CORE_EVENTS, session.namespace))
        counts: dict[str, int] = {}

        def print_new() -> None:
            happened = History(lws, pods.store.list(), names).read(events.store.list(), request.selection)
            for event in request.select(happened):
                if counts.get(event.ident) != event.count:
                    counts[event.ident] = event.count
                    print_text(event_document(event, request.form) if request.form else eventlines.event_line(event))

        async with following(pods, events, session.keepalive) as objects:
            await objects.wait_for(print_new)
