"""Episodes as text: a table, one episode in full, and a few lines about the last episode. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from leaderworkerset.cli.views import output
from leaderworkerset.recording.episode import Episode
from leaderworkerset.recording.wording import circumstances, ends, logs, sentence
from leaderworkerset.views.wording import age

HEADER: Final = ("EPISODE", "AGE", "OUTCOME", "FIRST", "FAILURE")

FEW_LINES: Final = 5


def table(found: Sequence[Episode], now: datetime, *, with_namespace: bool = False) -> list[str]:
    """Return one line per episode."""
    places = [one.namespace for one in found] if with_namespace else ()
    return output.table(HEADER, [_row(one, now) for one in found], namespaces=places)


def brief(one: Episode, now: datetime, lws: str) -> list[str]:
    """Return what happened, the last lines of the rank that failed first, and the command that shows the rest."""
    logs = (run for rank in one.ranks if rank.pod == one.failed_pod for own in rank.containers for run in own.logs)
    said = next((run for run in logs if run), ())
    return [
        f"Last recorded failure: {sentence(one, now)}",
        *(f"  {line}" for line in said[-FEW_LINES:]),
        f"  {lws} history -n {one.namespace} {one.place} shows all of it",
    ]


def lines(one: Episode, now: datetime) -> Iterator[str]:
    """Yield an episode in full: what happened, the revision, how each rank ended, events, and the logs."""
    yield f"{one.place}: {sentence(one, now)}"
    yield from circumstances(one)
    yield ""
    yield from output.table(
        ("RANK", "POD", "NODE", "CONTAINER", "RESTARTS", "ENDS"),
        [
            (str(rank.rank), rank.pod, rank.node or "-", container.name, str(container.restarts), ends(container.ends))
            for rank in one.ranks
            for container in rank.containers
        ],
    )
    if one.events:
        yield ""
        yield from output.table(
            ("TIME", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"),
            [
                (
                    event.time,
                    "Warning" if event.is_warning else "Normal",
                    event.reason,
                    event.object,
                    str(event.count),
                    event.message,
                )
                for event in one.events
            ],
        )
    for title, run in logs(one):
        yield ""
        yield title
        yield from (f"  {line}" for line in run)


def _row(one: Episode, now: datetime) -> tuple[str, ...]:
    first = "-" if one.first_rank is None else str(one.first_rank)
    return one.place, age(one.time, now), one.outcome, first, one.failure
