"""`lws get`: shows LeaderWorkerSets by group and rank, DisaggregatedSets, and the reasons for unready ranks."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import click
from msgspec.structs import replace

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.process import garbagecollection
from lwsctl.cli.sets.shown import QUOTED, GetRequest, observe, print_if_empty, select_views
from lwsctl.cli.shell import completion
from lwsctl.cli.views import formats, live, livetable, output, tables, terminal
from lwsctl.cli.views.formats import OutputFormat
from lwsctl.cli.views.terminal import print_states, print_text
from lwsctl.model.cluster import Cluster
from lwsctl.model.crashes import is_failing
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.lists import Lists
from lwsctl.observation.podlogs import silent_lines
from lwsctl.views import changes, rankusage
from lwsctl.views.changes import ViewSubject
from lwsctl.views.document import document, without_managed_fields
from lwsctl.views.reasons import behind

FORMATS = OutputFormat("wide", "view", "view-yaml", "json", "yaml", "name")
VIEWS = {"view": output.as_json, "view-yaml": output.as_yaml}
TABLES = (None, "wide")


@click.command("get")
@click.argument("names", nargs=-1, metavar="[LWS[/GROUP[/RANK]]|SET]...", shell_complete=completion.names)
@click.option("-o", "--output", "form", type=FORMATS, help="Output format. Defaults to a table.")
@click.option("-w", "--watch", "watches", is_flag=True, help="After listing the objects, watch for changes.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List objects across all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector to filter objects.")
@click.option(
    "--show-managed-fields",
    "managed_fields",
    is_flag=True,
    help="Keep the managedFields when printing objects as json, yaml or view.",
)
@click.option("--not-ready", "not_ready", is_flag=True, help="Show only ranks that are not ready, with the reason.")
@click.option(
    "--ranks", "every_rank", is_flag=True, help="Show each rank in a separate row, regardless of the number of groups."
)
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], *, watches: bool, **options: Any) -> None:
    """Display LeaderWorkerSets by group and rank, and DisaggregatedSets with their LeaderWorkerSets.

    If a LeaderWorkerSet has more than ten groups, groups in the same state share a row, and unready groups are listed
    first. If there are more than ten LeaderWorkerSets and you do not specify a name, each LeaderWorkerSet has a single row.
    Unready LeaderWorkerSets are listed first, with the reason. With --watch, the name of a DisaggregatedSet selects its
    LeaderWorkerSets.

    With -o wide, the output also contains nodes, addresses, revisions, GPUs, and resource usage, as shown by `lws top`.
    With --watch, resource usage is not shown.

    The formats json, yaml, name, jsonpath and custom-columns print API objects, as in kubectl. If you specify a
    group or a rank, they print its pods. With -o view, the groups, ranks and reasons of the table are printed as JSON,
    and with -o view-yaml as YAML.
    """
    request = GetRequest(tuple(targets.parse(name) for name in names), **options)
    if request.selections and (request.everywhere or request.selector):
        raise UsageError("names cannot be combined with --all-namespaces or --selector")
    if watches and request.form == "name":
        raise UsageError("--watch cannot be combined with -o name, because names do not change")
    if watches and request.managed_fields:
        raise UsageError("--watch cannot be combined with --show-managed-fields, because managedFields are not watched")
    if request.form in formats.OBJECTS[:2] and request.not_ready:
        raise UsageError(f"-o {request.form} prints objects instead of ranks; remove --not-ready, or use -o view")
    if formats.is_template(request.form) or (request.form in formats.OBJECTS[:2] and not watches):
        if watches or request.not_ready:
            raise UsageError(f"-o {request.form} does not support --watch and --not-ready; remove these options")
        asyncio.run(show_objects(target, request, str(request.form)))
        return
    asyncio.run(watch(target, request) if watches else show(target, request))


async def show(target: Target, request: GetRequest) -> None:
    """Print the current state."""
    async with target.session() as session:
        with garbagecollection.disable_collection():
            lists = Lists(session.client)
            plain, cluster = await observe(session, request, lists)
        views = select_views(cluster.views, request)
        shows_groups = request.form in TABLES and not request.table.is_brief(len(views))
        quoted = await quotations(session.client, views) if shows_groups else []
        show_lines = print_states if request.form in TABLES else print_text
        views = await with_usage(lists, views, request.namespace(session)) if request.form == "wide" else views
        show_lines(*render(views, request, cluster.sets, terminal.columns(sys.stdout)), *quoted)
        if request.form in TABLES:
            if not shows_groups:
                print_text(
                    f"use `{session.lws} get NAME` to show groups and ranks, or --not-ready to show all unready ranks",
                    err=True,
                )
            print_text(*list(filter(None, map(behind, cluster.views)))[:QUOTED], err=True)
            await print_causes(session, lists, (plain, cluster), request)
        await print_if_empty(session, cluster, request)


async def with_usage(lists: Lists, views: list[View], namespace: str) -> list[View]:
    """Return the views with their usage, unless pod metrics are not served or the user has no permission."""
    from lwsctl.model import usage

    try:
        return usage.with_usage(views, await lists.all(rankusage.metrics_selector(namespace)))
    except APIError:
        return views


async def show_objects(target: Target, request: GetRequest, form: str) -> None:
    """Print the result of a template for one named object or for the list of objects."""
    async with target.session() as session:
        objects: list[JSONObject] = []
        for selection in request.selections:
            if selection.group is None:
                objects.append((await targets.find_set(session, selection.name))[1])
            else:
                objects += await targets.list_pods(session, selection)
        if not request.selections:
            listing = await targets.list_objects(
                session, "" if request.everywhere else session.namespace, request.selector
            )
            objects += [*listing.sets, *listing.leaderworkersets]
    is_one = [selection.group is None or selection.rank is not None for selection in request.selections] == [True]
    click.echo(formats.render_objects(form, objects, is_one=is_one, managed_fields=request.managed_fields), nl=False)


async def print_causes(session: Session, lists: Lists, observed: tuple[Cluster, Cluster], request: GetRequest) -> None:
    """Print the causes of the first stuck sets on stderr, like `lws explain`, and the number of other stuck sets."""
    from lwsctl.cli.sets import diagnoses  # imports all causes, only for unready sets

    plain, cluster = observed
    now = SystemClock().now()
    unready = [view for view in select_views(cluster.views, request) if not view.is_ready or is_failing(view, now)]
    sets = [set_view for set_view in cluster.sets if not set_view.is_ready][:QUOTED]
    if not unready and not sets:
        return
    keys = {view.key for view in unready[:QUOTED]}
    waiting = [view for view in plain.views if view.key in keys]
    print_text(*await diagnoses.stuck_notes(session, lists, request.namespace(session), sets, waiting), err=True)
    where = " -A" if request.everywhere else f" -n {session.namespace}"
    if more := len(unready[QUOTED:]):
        print_text(
            f"{more} more {'is' if more == 1 else 'are'} not ready; use `{session.lws} explain{where}` to explain all",
            err=True,
        )


async def quotations(client: Client, views: Sequence[View]) -> list[str]:
    """Return the last lines of a failed rank in each set if its pod does not contain them."""
    return [line for text in await silent_lines(client, views, QUOTED) for line in ("", *text.splitlines())]


async def watch(target: Target, request: GetRequest) -> None:
    """Print the current state, and then print changes."""
    from lwsctl.cli.watchwarnings import following
    from lwsctl.observation.conditionwatch import AllSets

    screen = watcher(request)
    async with target.session() as session:
        for selection in request.selections:
            await targets.find_set(session, selection.name)
        everything = AllSets(session.client, "" if request.everywhere else session.namespace, request.selector)
        try:
            async with following(*everything.all, session.keepalive) as objects:
                await objects.wait_for(
                    lambda: screen.update(select_views(everything.views(), request)), every=screen.refresh
                )
        finally:
            screen.close()


def watcher(request: GetRequest) -> "Watcher":
    """Return the watcher for the output format.

    On a terminal, the watcher redraws the table. Otherwise, it prints lines.
    """
    if request.form in VIEWS:
        return ViewWatcher(request.form)
    if request.form in {"json", "yaml"}:
        return ObjectWatcher(request.form)
    if terminal.is_colored(sys.stdout):
        return live.TerminalDisplay(with_namespace=request.everywhere)
    return LineWatcher(request)


class Watcher(Protocol):
    """Shows views after each change, and every `refresh` seconds to update ages."""

    refresh: float | None

    def update(self, views: Sequence[View]) -> None:
        """Show the current views."""

    def close(self) -> None:
        """Complete the output."""


class ViewWatcher:
    """Prints the view after each change, as one line of JSON or as a YAML document with a separator."""

    refresh: float | None = None

    def __init__(self, form: str) -> None:
        self._form = form

    def update(self, views: Sequence[View]) -> None:
        """Print a document."""
        value = document(views)
        click.echo(output.as_json_line(value) if self._form == "view" else f"---\n{output.as_yaml(value)}")

    def close(self) -> None:
        """Do nothing, because no output is pending."""


class ObjectWatcher:
    """Prints each LeaderWorkerSet when it changes, as one line of JSON or as a YAML document with a separator."""

    refresh: float | None = None

    def __init__(self, form: str) -> None:
        self._form = form
        self._shown: dict[str, str] = {}

    def update(self, views: Sequence[View]) -> None:
        """Print the objects that changed."""
        versions = {str(meta.uid(view.object)): str(meta.resource_version(view.object)) for view in views}
        for view in views:
            uid = meta.uid(view.object)
            if versions[uid] != self._shown.get(uid):
                obj = without_managed_fields(view.object)
                click.echo(output.as_json_line(obj) if self._form == "json" else f"---\n{output.as_yaml(obj)}")
        self._shown = versions

    def close(self) -> None:
        """Do nothing, because no output is pending."""


class LineWatcher:
    """Prints the tables, and then at most one change per second for each LeaderWorkerSet or group.

    If a LeaderWorkerSet has more than ten groups, groups with the same change share a line.
    """

    refresh: float | None = live.REFRESH

    def __init__(self, request: GetRequest, clock: Clock | None = None) -> None:
        self._request = request
        self._clock = clock or SystemClock()
        self._views: Sequence[View] = ()
        self._shown: dict[str, ViewSubject] | None = None
        self._last: dict[str, datetime] = {}

    def update(self, views: Sequence[View]) -> None:
        """Print the changes. Delay the changes to subjects that were printed within the last second."""
        self._views = views
        if self._shown is None:
            self._shown = self._subjects()
            print_text(*render(views, self._request))
        else:
            self._print(self._shown, live.BETWEEN_LINES)

    def close(self) -> None:
        """Print the lines that were delayed."""
        if self._shown is not None:
            self._print(self._shown, timedelta())

    def _print(self, previous: dict[str, ViewSubject], distance: timedelta) -> None:
        now, current = self._clock.now(), self._subjects()
        self._last = {pace: then for pace, then in self._last.items() if now - then < distance}
        new, known = changes.lines(previous, current, self._last), previous | current
        print_text(*changes.group_lines(new, known, now))
        waiting = {name: subject for name, subject in previous.items() if subject.rate_limit_key in self._last}
        self._shown = {
            name: subject for name, subject in current.items() if subject.rate_limit_key not in self._last
        } | waiting
        self._last |= {known[name].rate_limit_key: now for name in new}

    def _subjects(self) -> dict[str, ViewSubject]:
        return changes.subjects(self._views, self._clock.now(), with_namespace=self._request.everywhere)


def resource_names(view: View, request: GetRequest) -> list[str]:
    """Return `RESOURCE/NAME` for a LeaderWorkerSet, or for its pods if only groups or ranks are selected."""
    parts = [selection.group for selection in request.selections if selection.name == view.name]
    if not parts or None in parts:
        return [f"leaderworkerset.leaderworkerset.x-k8s.io/{view.name}"]
    return [f"pod/{rank.pod}" for rank in view.ranks if rank.object is not None]


def render(
    views: Sequence[View],
    request: GetRequest,
    sets: Sequence[SetView] = (),
    columns: int | None = None,
) -> list[str]:
    """Return the lines in the selected format.

    If a table is wider than `columns`, the reasons are printed below the rows.
    """
    form = request.form
    if form in VIEWS:
        return [VIEWS[form](document(views, sets, managed_fields=request.managed_fields))]
    if form == "name":
        set_names = (f"disaggregatedset.disaggregatedset.x-k8s.io/{set_view.name}" for set_view in sets)
        return [*dict.fromkeys([*set_names, *(name for view in views for name in resource_names(view, request))])]
    now = SystemClock().now()
    usage = rankusage.resources(rank for view in views for rank in view.ranks)
    below = tables.tables(views, now, replace(request.table, usage=usage))
    if columns is not None and form is None and not request.shows_ranks and max(map(len, below), default=0) > columns:
        below = livetable.lines(views, now, livetable.Size(columns), with_namespace=request.everywhere)[1:]
    above = tables.set_tables(sets, now, with_namespace=request.everywhere, is_brief=request.table.is_brief(len(sets)))
    return [*above, "", *below] if above and below else [*above, *below]
