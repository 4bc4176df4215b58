"""`lws top`: shows the CPU, memory and GPU usage of each rank."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import click

from kuberuntime.clock import SystemClock
from kuberuntime.errors import NotFoundError
from kuberuntime.objects.quantity import NANOS, ZERO, Quantity
from kuberuntime.objects.resources import POD_METRICS
from leaderworkerset.api import labels
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session, Target
from leaderworkerset.cli.errors import CommandError, UsageError
from leaderworkerset.cli.sets.shown import GetRequest, cut, read
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.views import output
from leaderworkerset.cli.views.terminal import say
from leaderworkerset.diagnosis.loads import CPU, GPU, GPU_MEMORY, MEMORY, RESOURCES, RankLoad, bound, by_pod, loads
from leaderworkerset.views import devices

SORTS: Final = {"cpu": CPU, "memory": MEMORY, "gpu": GPU, "gpu-memory": GPU_MEMORY}
MISSING_API: Final = (
    "the cluster serves no metrics of pods (metrics.k8s.io): install metrics-server; an embedded cluster has them"
)


@click.command("top")
@click.argument("names", nargs=-1, metavar="[LWS[/GROUP[/RANK]]|SET]...", shell_complete=completing.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only objects with these labels.")
@click.option("--sort", type=click.Choice(list(SORTS)), help="The ranks that use the most first.")
@click.option(
    "-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="The output format instead of a table."
)
@click.pass_obj
def command(
    target: Target, /, names: tuple[str, ...], *, everywhere: bool, selector: str, sort: str | None, form: str | None
) -> None:
    """Show the CPU and memory usage of each rank, and its GPU usage on an embedded cluster.

    The numbers come from the metrics API (metrics-server). "of" is the limit, or the request if there is none.
    """
    wanted = GetRequest(tuple(targets.parse(name) for name in names), None, everywhere, selector, False)
    if wanted.chosen and (everywhere or selector):
        raise UsageError("names cannot be combined with --all-namespaces or --selector")

    async def act(session: Session) -> None:
        rows = await measured(session, wanted)
        if sort:
            rows.sort(key=lambda row: row.amount(SORTS[sort]), reverse=True)
        if form:
            value = [record(row) for row in rows]
            click.echo(output.as_json(value) if form == "json" else output.as_yaml(value), nl=form == "json")
            return
        say(*table(rows, SystemClock().now(), everywhere=everywhere))
        if not rows:
            namespace = "" if everywhere else session.namespace
            say(
                "No ranks are there yet."
                if wanted.chosen
                else await targets.nothing_found(session, namespace, selector),
                err=True,
            )

    target.run(act)


async def measured(session: Session, wanted: GetRequest) -> list[RankLoad]:
    """Return the usage of the requested ranks."""
    _, views = await read(session, wanted)
    try:
        metrics = await session.client.list(
            POD_METRICS, namespace=wanted.namespace(session), label_selector=labels.NAME
        )
    except NotFoundError as error:
        raise CommandError(MISSING_API) from error
    return loads(cut(views, wanted), by_pod(metrics.items))


def table(rows: Sequence[RankLoad], now: datetime, *, everywhere: bool = False) -> list[str]:
    """Return a line for each rank, and the sum of several ranks; GPUs only if they are measured."""
    if not rows:
        return []
    has_gpus = any(name in (row.used or {}) for row in rows for name in (GPU, GPU_MEMORY))
    header = ["RANK", "NODE", "CPU", "MEMORY", *(["GPU", "GPU MEMORY"] if has_gpus else [])]
    lines = [
        [
            f"{row.view.name}/{row.rank.place}",
            row.rank.node or "-",
            *(cell(row, name) for name in (CPU, MEMORY)),
            *([busy(row, now), cell(row, GPU_MEMORY)] if has_gpus else []),
        ]
        for row in rows
    ]
    if len(rows) > 1:
        sums = [amount_of(name, sum((row.amount(name) for row in rows), ZERO)) for name in RESOURCES]
        lines.append([f"{len(rows)} ranks", "", *sums[:2], *(sums[2:] if has_gpus else [])])
    spaces = [row.view.namespace for row in rows] + [""] * (len(lines) - len(rows))
    return output.table(header, lines, namespaces=spaces if everywhere else ())


def cell(row: RankLoad, name: str) -> str:
    """Return the usage of a resource by a rank, and its limit; `-` if it is not measured."""
    if row.used is None or name not in row.used:
        return "-"
    most = bound(row.rank.object or {}, name)
    used = amount_of(name, row.used[name])
    return used if most is None else f"{used} of {amount_of(name, most)}"


def busy(row: RankLoad, now: datetime) -> str:
    """Return how busy the GPUs of a rank are, and how long they have been idle."""
    own, used = len(devices.of_pod(row.rank.object)), (row.used or {}).get(GPU)
    if used is None or not own:
        return "-"
    idle = devices.idle(row.rank.object, now)
    return f"{round(100 * used.nanos / NANOS / own)}% of {own}" + (f" ({idle})" if idle else "")


def amount_of(name: str, value: Quantity) -> str:
    """Return an amount as text: CPU with two digits, memory in Mi or Gi.

    >>> amount_of("cpu", Quantity(1_250_000_000)), amount_of("memory", Quantity(3 * 2**29 * 10**9))
    ('1.25', '1.5Gi')
    """
    if name in (CPU, GPU):
        return f"{value.nanos / NANOS:.2f}"
    mebibytes = value.nanos / NANOS / 2**20
    return f"{mebibytes / 1024:.1f}Gi".replace(".0Gi", "Gi") if mebibytes >= 1024 else f"{mebibytes:.0f}Mi"


def record(row: RankLoad) -> dict[str, object]:
    """Return the row as an object: `used` has quantities by resource, null if the rank was not measured."""
    return {
        "namespace": row.view.namespace,
        "leaderWorkerSet": row.view.name,
        "group": row.rank.group,
        "rank": row.rank.index,
        "pod": row.rank.pod,
        "node": row.rank.node,
        "used": None if row.used is None else {name: str(value) for name, value in sorted(row.used.items())},
    }
