"""`lws top`: shows the CPU, memory and GPU usage of each rank."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias

import click

from kuberuntime.clock import SystemClock
from kuberuntime.errors import NotFoundError
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.cli.sets.shown import GetRequest, read, select_views
from lwsctl.cli.shell import completion
from lwsctl.cli.views import output
from lwsctl.cli.views.terminal import print_text
from lwsctl.model.cluster import Cluster
from lwsctl.model.groups import Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.model.usage import with_usage
from lwsctl.observation.lists import Lists
from lwsctl.views import rankusage

SORTS: Final = {
    "cpu": rankusage.CPU,
    "memory": rankusage.MEMORY,
    "gpu": rankusage.GPU,
    "gpu-memory": rankusage.GPU_MEMORY,
}
MISSING_API: Final = "the cluster does not provide pod metrics (metrics.k8s.io); install metrics-server"

Row: TypeAlias = tuple[View, Rank]
"""A rank and its LeaderWorkerSet."""


@click.command("top")
@click.argument("names", nargs=-1, metavar="[LWS[/GROUP[/RANK]]|SET]...", shell_complete=completion.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List ranks across all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector to filter objects.")
@click.option(
    "--sort", type=click.Choice(list(SORTS)), help="Sort ranks by the usage of this resource, in descending order."
)
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Output format. Defaults to a table.")
@click.pass_obj
def command(
    target: Target, /, names: tuple[str, ...], *, everywhere: bool, selector: str, sort: str | None, form: str | None
) -> None:
    """Show the CPU and memory usage of each rank. In an embedded cluster, GPU usage is also shown.

    The usage is read from the metrics API, which metrics-server provides. The value after "of" is the limit, or the request
    if no limit is set.
    """
    request = GetRequest(tuple(map(targets.parse, names)), everywhere=everywhere, selector=selector)
    if request.selections and (everywhere or selector):
        raise UsageError("names cannot be combined with --all-namespaces or --selector")

    async def run_command(session: Session) -> None:
        cluster = await read(session, request)
        rows = await measure_ranks(session, request, cluster)
        if sort:
            rows.sort(key=lambda row: rankusage.used_amount(row[1], SORTS[sort]), reverse=True)
        if form:
            value = [usage_record(view, rank) for view, rank in rows]
            click.echo(output.as_json(value) if form == "json" else output.as_yaml(value), nl=form == "json")
            return
        print_text(*table(rows, SystemClock().now(), everywhere=everywhere))
        if not rows:
            namespace = "" if everywhere else session.namespace
            print_text(
                "No ranks found." if cluster.views else await targets.nothing_found(session, namespace, selector),
                err=True,
            )

    target.run(run_command)


async def measure_ranks(session: Session, request: GetRequest, cluster: Cluster) -> list[Row]:
    """Return the requested ranks that have a pod, with their usage."""
    try:
        metrics = await Lists(session.client).all(rankusage.metrics_selector(request.namespace(session)))
    except NotFoundError as error:
        raise CommandError(MISSING_API) from error
    views = with_usage(select_views(cluster.views, request), metrics)
    return [(view, rank) for view in views for rank in view.ranks if rank.object is not None]


def table(rows: Sequence[Row], now: datetime, *, everywhere: bool = False) -> list[str]:
    """Return a line for each rank, and a total if there are several ranks.

    GPUs are shown only if they are measured.
    """
    if not rows:
        return []
    ranks = [rank for _, rank in rows]
    names = rankusage.resources(ranks) or (rankusage.CPU, rankusage.MEMORY)
    header = ["RANK", "NODE", *(rankusage.TITLES[name].upper() for name in names)]
    lines = [
        [f"{view.name}/{rank.place}", rank.node or "-", *rankusage.usage_cells(rank, names, now)] for view, rank in rows
    ]
    if len(rows) > 1:
        lines.append([f"{len(rows)} ranks", "", *rankusage.usage_totals(ranks, names)])
    spaces = [view.namespace for view, _ in rows] + [""] * (len(lines) - len(rows))
    return output.table(header, lines, namespaces=spaces if everywhere else ())


def usage_record(view: View, rank: Rank) -> dict[str, object]:
    """Return the usage of a rank as an object. `used` is null if the rank is not measured."""
    return {
        "namespace": view.namespace,
        "leaderWorkerSet": view.name,
        "group": rank.group,
        "rank": rank.index,
        "pod": rank.pod,
        "node": rank.node,
        "used": None if rank.usage is None else {name: str(usage.amount) for name, usage in sorted(rank.usage.items())},
    }
