"""`lws tree`: DisaggregatedSets, LeaderWorkerSets, groups and ranks, each below its owner."""

import asyncio
from typing import Any

import click

from kuberuntime.clock import SystemClock
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Target
from leaderworkerset.cli.errors import UsageError
from leaderworkerset.cli.sets.shown import GetRequest, observe, say_if_empty
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import treelines
from leaderworkerset.cli.views.terminal import say


@click.command("tree")
@click.argument("names", nargs=-1, metavar="[LWS[/GROUP[/RANK]]|SET]...", shell_complete=completing.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only objects with these labels.")
@click.option("--not-ready", "not_ready", is_flag=True, help="Only ranks that are not ready, and why.")
@click.option("--ranks", "every_rank", is_flag=True, help="A line for each rank, even for more than ten groups.")
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], **options: Any) -> None:
    """Show DisaggregatedSets, LeaderWorkerSets, groups and ranks as a tree.

    With more than ten groups, equal ones share a line: first those that are not ready, then the healthy ones.
    With more than ten sets that were not named, ready ones have a line each.
    """
    chosen = tuple(targets.parse(name) for name in names)
    wanted = GetRequest(chosen, None, managed_fields=False, **options)
    if wanted.chosen and (wanted.everywhere or wanted.selector):
        raise UsageError("names cannot be combined with --all-namespaces or --selector")
    asyncio.run(show(target, wanted))


async def show(target: Target, wanted: GetRequest) -> None:
    """Print the tree of the current state."""
    async with target.session() as session:
        seen = await observe(session, wanted)
        lines = treelines.lines(
            seen.shown,
            seen.sets,
            SystemClock().now(),
            with_namespace=wanted.everywhere,
            every_rank=wanted.shows_ranks,
            is_chosen=bool(wanted.chosen),
        )
        say(*lines)
        await say_if_empty(session, seen, wanted)
