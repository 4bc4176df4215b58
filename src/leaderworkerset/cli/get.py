"""`lws get`: LeaderWorkerSets with their groups and ranks, and why what is not ready is not."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from leaderworkerset.api import meta
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli import output, selection
from leaderworkerset.cli.groups import Group, View
from leaderworkerset.cli.selection import Selection
from leaderworkerset.cli.target import Session, Target

FORMATS = click.Choice(["wide", "json", "yaml", "name"])


@click.command("get")
@click.argument("names", nargs=-1, metavar="[LWS[/GROUP[/RANK]]]...")
@click.option("-o", "--output", "form", type=FORMATS, help="Another form than the table.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Those of all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Those with these labels.")
@click.pass_obj
def command(target: Target, names: tuple[str, ...], form: str | None, everywhere: bool, selector: str) -> None:  # noqa: FBT001 - click passes it
    """Show LeaderWorkerSets by group and rank."""
    chosen = [selection.parse(name) for name in names]
    if chosen and (everywhere or selector):
        raise click.UsageError("names do not go together with --all-namespaces or --selector")

    async def act() -> list[View]:
        async with target.session() as session:
            if chosen:
                return [await named(session, one) for one in chosen]
            listing = await session.client.list(
                LEADERWORKERSETS, namespace="" if everywhere else session.namespace, label_selector=selector
            )
            return [await selection.view_of(session, lws) for lws in sorted(listing.items, key=meta.key)]

    views = asyncio.run(act())
    for line in render(views, form, everywhere=everywhere):
        click.echo(line)
    if not views:
        click.echo("No LeaderWorkerSets found.", err=True)


async def named(session: Session, chosen: Selection) -> View:
    """Return the view of one LeaderWorkerSet, cut to the group and rank that were asked for."""
    view = await selection.view_of(session, await selection.find(session, chosen.name))
    return narrowed(view, chosen)


def narrowed(view: View, chosen: Selection) -> View:
    """Cut a view to one group or rank."""
    if chosen.group is None:
        return view
    groups = (group for group in view.groups if group.index == chosen.group)
    kept = tuple(
        Group(
            index=group.index,
            revision=group.revision,
            ranks=tuple(rank for rank in group.ranks if chosen.rank in (None, rank.index)),
        )
        for group in groups
    )
    return View(
        name=view.name,
        namespace=view.namespace,
        ready=view.ready,
        desired=view.desired,
        up_to_date=view.up_to_date,
        created=view.created,
        groups=kept,
        object=view.object,
    )


def render(views: Sequence[View], form: str | None, *, everywhere: bool) -> list[str]:
    """Return the lines of the chosen form."""
    if form == "json":
        return [output.as_json(output.document(views))]
    if form == "yaml":
        return [output.as_yaml(output.document(views))]
    if form == "name":
        return [f"leaderworkerset.leaderworkerset.x-k8s.io/{view.name}" for view in views]
    return tables(views, datetime.now(UTC), wide=form == "wide", everywhere=everywhere)


def tables(views: Sequence[View], now: datetime, *, wide: bool, everywhere: bool) -> list[str]:
    """Return the table of sets, and below it the ranks of each."""
    if not views:
        return []
    lines = output.sets(views, now, with_namespace=everywhere)
    for view in views:
        if any(group.ranks for group in view.groups):
            lines += ["", f"{view.name}:"] if len(views) > 1 else [""]
            lines += output.groups(view.groups, now, wide=wide)
    return lines
