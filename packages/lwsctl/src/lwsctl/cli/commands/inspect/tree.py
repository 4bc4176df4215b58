"""`lws tree`: shows DisaggregatedSets, LeaderWorkerSets, groups and ranks as a tree of owners."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.clock import SystemClock
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Target
from lwsctl.cli.errors import UsageError
from lwsctl.cli.sets.shown import GetRequest, observe, print_if_empty, select_views
from lwsctl.cli.shell import completion
from lwsctl.cli.views import output
from lwsctl.cli.views.livetable import wrap
from lwsctl.cli.views.terminal import columns as columns_of
from lwsctl.cli.views.terminal import print_states
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import wording
from lwsctl.views.grouprows import FEW_GROUPS, FEW_SETS, GroupRow, group_rows


@click.command("tree")
@click.argument("names", nargs=-1, metavar="[LWS[/GROUP[/RANK]]|SET]...", shell_complete=completion.names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List objects across all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector to filter objects.")
@click.option("--not-ready", "not_ready", is_flag=True, help="Show only ranks that are not ready, with the reason.")
@click.option(
    "--ranks",
    "every_rank",
    is_flag=True,
    help="Show each rank on a separate line, regardless of the number of groups.",
)
@click.pass_obj
def command(target: Target, /, names: tuple[str, ...], **options: Any) -> None:
    """Show DisaggregatedSets, LeaderWorkerSets, groups and ranks as a tree.

    If a LeaderWorkerSet has more than ten groups, groups in the same state share a line, and unready groups are listed
    first. If you do not specify a name and more than ten objects are listed, each ready object is shown on a single line.
    """
    request = GetRequest(tuple(map(targets.parse, names)), **options)
    if request.selections and (request.everywhere or request.selector):
        raise UsageError("names cannot be combined with --all-namespaces or --selector")
    asyncio.run(show(target, request))


async def show(target: Target, request: GetRequest) -> None:
    """Print the tree of the current state."""
    async with target.session() as session:
        _, cluster = await observe(session, request)
        roots = branches(
            select_views(cluster.views, request),
            cluster.sets,
            SystemClock().now(),
            with_namespace=request.everywhere,
            every_rank=request.shows_ranks,
            is_chosen=bool(request.selections),
        )
        print_states(*tree_lines(roots, columns_of(sys.stdout)))
        await print_if_empty(session, cluster, request)


HEADER: Final = ("NAME", "READY", "STATE", "NODE", "REVISION", "RESTARTS", "AGE")

LINES: Final = "│├└─ "
"""The characters before a name in the tree."""

Cells = tuple[str, ...]


class Branch(Struct, frozen=True):
    """A line in the tree, the reason why its object is not ready, and the child branches."""

    cells: Cells
    reason: str = ""
    children: tuple["Branch", ...] = ()


def branches(
    views: Sequence[View],
    sets: Sequence[SetView],
    now: datetime,
    *,
    with_namespace: bool = False,
    every_rank: bool = False,
    is_chosen: bool = False,
) -> list[Branch]:
    """Return the roots, first DisaggregatedSets with their parts, and then LeaderWorkerSets without an owner.

    If there are many sets and none is named, the branches below ready sets are omitted, unless every rank is requested.
    """
    part_ids = {id(part.object) for set_view in sets for part in set_view.parts}
    alone = [view for view in views if id(view.object) not in part_ids]
    done = [set_view.is_settled for set_view in sets] + [view.is_settled for view in alone]
    roots = [
        _of_set(set_view, views, now, every_rank=every_rank, prefix=_prefix(set_view, with_namespace))
        for set_view in sets
    ]
    roots += [_of_view(view, now, every_rank=every_rank, prefix=_prefix(view, with_namespace)) for view in alone]
    if len(roots) > FEW_SETS and not (every_rank or is_chosen):
        roots = [replace(root, children=()) if is_done else root for root, is_done in zip(roots, done, strict=True)]
    return roots


def tree_lines(roots: Sequence[Branch], columns: int | None) -> list[str]:
    """Return the lines of the tree. If lines are longer than `columns`, the reasons are below the tree."""
    rows = [row for root in roots for row in _rows(root, "", "")]
    if not rows:
        return []
    cells, whys = [cells for cells, _ in rows], [why for _, why in rows]
    lines = output.table(HEADER, cells, whys=whys)
    if columns is None or max(map(len, lines)) <= columns:
        return lines
    below = [
        line
        for (name, *_), why in zip(cells, output.without_repetitions(whys), strict=True)
        if why not in {"", '"'}
        for line in wrap(f"{name.strip(LINES)}: {why}", columns)
    ]
    return [*output.table(HEADER, cells), *below]


def _prefix(subject: View | SetView, with_namespace: bool) -> str:  # noqa: FBT001 - passed on
    return f"{subject.namespace}/" if with_namespace else ""


def _rows(branch: Branch, stem: str, below: str) -> Iterator[tuple[Cells, str]]:
    """Yield a branch and its child branches, with tree characters before the names."""
    yield (f"{stem}{branch.cells[0]}", *branch.cells[1:]), branch.reason
    for at, twig in enumerate(branch.children, 1):
        is_last = at == len(branch.children)
        yield from _rows(twig, f"{below}{'└─ ' if is_last else '├─ '}", f"{below}{'   ' if is_last else '│  '}")


def _of_set(view: SetView, views: Sequence[View], now: datetime, *, every_rank: bool, prefix: str) -> Branch:
    by_id = {id(lws.object): lws for lws in views}  # filtered or explained
    parts = tuple(
        _of_view(by_id[id(part.object)], now, every_rank=every_rank, prefix="")
        for part in view.parts
        if id(part.object) in by_id
    )
    state = view.rollout if view.rollout != "complete" else ""
    cells = (f"{prefix}{view.name}", f"{view.ready}/{view.desired}", state, "", "", "", wording.age(view.created, now))
    return Branch(cells, children=parts)


def _of_view(view: View, now: datetime, *, every_rank: bool, prefix: str) -> Branch:
    if every_rank or len(view.groups) <= FEW_GROUPS:
        below = tuple(_group_branch(group, now) for group in view.groups)
    else:
        below = tuple(Branch(_group_row_cells(fold, now), fold.reason) for fold in group_rows(view.groups, now))
    updated = [f"updated {view.updated} of {view.desired}"] if view.is_updating else []
    state = ", ".join([*updated, *output.hidden_groups_line(view)])
    cells = (f"{prefix}{view.name}", f"{view.ready}/{view.desired}", state, "", "", "", wording.age(view.created, now))
    return Branch(cells, children=below)


def _group_branch(group: Group, now: datetime) -> Branch:
    fold = group_rows([group], now)[0]
    note = output.format_recreations(group, now)
    ranks = tuple(_rank_branch(rank, now) for rank in group.ranks)
    return Branch(_group_row_cells(fold, now), note, ranks)


def _group_row_cells(fold: GroupRow, now: datetime) -> Cells:
    noun = "group" if len(fold.groups) == 1 else "groups"
    ready = f"{fold.ready_ranks}/{fold.ranks}"
    return (
        f"{noun} {fold.group_names}",
        ready,
        fold.state,
        "",
        fold.revision or "-",
        str(fold.restarts),
        fold.age(now),
    )


def _rank_branch(rank: Rank, now: datetime) -> Branch:
    cells = (
        f"{rank.index} {rank.pod}",
        "yes" if rank.is_ready else "no",
        wording.state(rank),
        rank.node or "-",
        "",
        str(rank.restarts),
        wording.age(rank.created, now),
    )
    return Branch(cells, wording.reason(rank))
