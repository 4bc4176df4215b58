"""Finds the first error of several ranks, which consists of the rank that failed first and its log line.

The input is the last lines of each rank with timestamps. The output is the earliest line that explains an error.
Commands and records select such lines with the same function (`errorlines.first_error`). Lines are ordered by the clocks
of the nodes.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.errors import KubeError
from kuberuntime.objects import errorchains, errorlines
from kuberuntime.objects.untrustedtext import clean
from lwsctl.dashboard.logstream import LONGEST_LINE, RankChoice
from lwsctl.model.disaggregatedset import rank_path
from lwsctl.model.groups import Group, Rank, root_cause_rank
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import podsecrets
from lwsctl.observation.logfollower import comparable
from lwsctl.observation.podlogs import PodLogOptions, read

MOST_RANKS: Final = 64
"""The maximum number of ranks whose logs are read. Ranks with a problem are read first."""

PATIENCE: Final = 5.0

Lines: TypeAlias = Sequence[bytes]
"""Log lines with their timestamps."""


class FirstError(Struct, frozen=True):
    """An error line with its rank and time. `read` is the number of ranks whose logs were searched."""

    rank: str
    time: str
    text: str
    read: int


def earliest_error(logs: Mapping[str, Lines]) -> FirstError | None:
    """Return the earliest error, or None if there is no error. Errors caused by the exit of another rank are last.

    >>> earliest_error({"0/0": [b"2026-01-01T00:00:02Z lost connection to rank 1"], "0/1": [b"2026-01-01T00:00:01Z KeyError: 1"]}).rank
    '0/1'
    """
    errors = []
    for place, lines in logs.items():
        parts = [line.partition(b" ") for line in lines]
        texts = [clean(text[:LONGEST_LINE].decode(errors="replace")) for _, _, text in parts]
        error_line = errorlines.first_error(texts)
        at = next((at for at in reversed(range(len(texts))) if texts[at].strip() == error_line.line), None)
        if error_line.is_certain and at is not None:
            stamp = parts[at][0]
            order = (errorchains.is_of_peer(error_line.line), comparable(stamp))
            errors.append((order, FirstError(place, stamp.decode(errors="replace"), error_line.line, len(logs))))
    return min(errors, key=lambda pair: pair[0])[1] if errors else None


async def find_first_error(client: Client, ranks: Mapping[str, Rank]) -> FirstError | None:
    """Read the logs of ranks by path concurrently, and return the first error with masked secrets."""
    places = sorted(ranks, key=lambda place: not (ranks[place].deaths or ranks[place].is_problem))[:MOST_RANKS]
    async with asyncio.TaskGroup() as tasks:
        readers = {place: tasks.create_task(_lines(client, ranks[place])) for place in places}
    first = earliest_error({place: reader.result() for place, reader in readers.items()})
    if first is None:
        return None
    failed = ranks[first.rank].object
    mask = await podsecrets.build_mask(client, [] if failed is None else [failed])
    return FirstError(first.rank, first.time, mask.text(first.text), first.read)


def ranks_to_search(owners: Iterable[tuple[View, Sequence[str]]], choice: RankChoice) -> dict[str, Rank]:
    """Return the selected ranks to search, by path.

    Without a selection, return the ranks of groups with a problem, or all ranks.
    """
    groups = [(group, names) for view, names in owners for group in view.groups]
    if not choice.choices:
        groups = [pair for pair in groups if _is_ill(pair[0])] or groups
    return {
        rank_path(rank.place, names): rank
        for group, names in groups
        for rank in group.ranks
        if not choice.choices or choice.covers(rank, names)
    }


def _is_ill(group: Group) -> bool:
    return root_cause_rank(group.ranks) is not None or any(rank.deaths for rank in group.ranks)


async def _lines(client: Client, rank: Rank) -> list[bytes]:
    if rank.object is None:
        return []
    options = PodLogOptions(
        tail=errorlines.JUDGED, timestamps=True, previous=rank.restarts > 0 and rank.state == "Running"
    )
    try:
        async with timeouts.within(PATIENCE):
            return [line async for line in read(client, rank.object, options)]
    except (KubeError, TimeoutError):
        return []
