"""Completes names of LeaderWorkerSets and DisaggregatedSets, and groups and ranks after a slash.

Errors are not printed during completion. If there is no response in time, there are no suggestions.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import click

from lwsctl.cli.shell.kubectlparser import LOCAL, find_cluster_options

__all__ = [
    "LOCAL",
    "MOST",
    "PATIENCE",
    "filter_by_prefix",
    "find_cluster_options",
    "group_or_rank_paths",
    "names",
    "typed_words",
]

if TYPE_CHECKING:
    from lwsctl.cli.cluster.target import Session  # imported only to complete a name

PATIENCE: Final = 3.0
"""The maximum time in seconds that a shell waits for completion."""

MOST: Final = 200
"""The maximum number of suggestions."""


def names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that start with the given prefix."""
    import asyncio

    from msgspec import convert

    from kuberuntime.client import http  # noqa: F401 - imported before the time limit starts
    from kuberuntime.errors import KubeError
    from lwsctl.cli import targets  # noqa: F401 - likewise
    from lwsctl.cli.cluster.target import Target
    from lwsctl.cli.errors import CommandError

    async def read() -> list[str]:
        async with convert(find_cluster_options(typed_words(), ctx.find_root().command), Target).session() as session:
            return await _names(session, incomplete)

    try:
        return asyncio.run(asyncio.wait_for(read(), PATIENCE))
    except (KubeError, CommandError, OSError, TimeoutError):
        return []


def filter_by_prefix(names: Iterable[str], start: str) -> list[str]:
    """Return the suggested names that start with the given prefix."""
    return [name for name in sorted(names) if name.startswith(start)][:MOST]


def typed_words() -> list[str]:
    """Return the words of the command line to complete, or no words if a quotation is open."""
    try:
        return shlex.split(os.environ.get("COMP_WORDS", ""))[1:]
    except ValueError:
        return []


async def _names(session: "Session", incomplete: str) -> list[str]:
    from kuberuntime.objects import meta
    from kuberuntime.objects.resources import PODS
    from leaderworkerset.api.groupname import group_and_rank, parse_group_name
    from leaderworkerset.api.resources import LEADERWORKERSETS
    from lwsctl.cli import targets
    from lwsctl.views.selection import Selection

    name, *rest = incomplete.split("/")
    if rest:
        group = parse_group_name(rest[0]) if len(rest) > 1 else None
        selector = Selection(name, group, None if len(rest) > 1 else 0).label_selector()  # the leaders of groups
        listing = await session.client.list(PODS, namespace=session.namespace, label_selector=selector)
        return group_or_rank_paths(name, [place for pod in listing.items if (place := group_and_rank(pod))], incomplete)
    sets = await session.client.list(LEADERWORKERSETS, namespace=session.namespace)
    others = await targets.list_sets(session, session.namespace, "")
    return filter_by_prefix({meta.name(obj) for obj in (*sets.items, *others)}, incomplete)


def group_or_rank_paths(name: str, pairs: Sequence[tuple[int | str, int]], incomplete: str) -> list[str]:
    """Return the groups, or the ranks of the given group.

    >>> group_or_rank_paths("web", [(0, 0), (0, 1), (1, 0)], "web/")
    ['web/0', 'web/1']
    >>> group_or_rank_paths("web", [(0, 0), (0, 1), (1, 0)], "web/0/")
    ['web/0/0', 'web/0/1']
    """
    depth = incomplete.count("/")
    positions = {
        f"{name}/{group}" if depth == 1 else f"{name}/{group}/{rank}": (group, rank) for group, rank in sorted(pairs)
    }
    in_order = sorted(positions, key=lambda place: positions[place])
    return [place for place in in_order if place.startswith(incomplete)][:MOST]
