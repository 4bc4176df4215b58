"""Episodes as text: a table of them, one in full, and the sentence about the last one. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from leaderworkerset.cli.views import output
from leaderworkerset.recording.episode import ContainerEnd, Episode, Outcome, RankEnd, RunEnd
from leaderworkerset.views.wording import age, counted

HEADER: Final = ("EPISODE", "AGE", "OUTCOME", "FIRST", "FAILURE")

FEW_LINES: Final = 5

WORDS: Final = {Outcome.FAILED: "failed", Outcome.RECREATED: "was recreated", Outcome.EXHAUSTED: "was given up"}


def table(found: Sequence[Episode], now: datetime, *, with_namespace: bool = False) -> list[str]:
    """Return one line per episode."""
    header = [*(["NAMESPACE"] if with_namespace else []), *HEADER]
    return output.table(header, [[*([one.namespace] if with_namespace else []), *_row(one, now)] for one in found])


def sentence(one: Episode, now: datetime) -> str:
    """Return in one sentence what happened."""
    first = "" if one.first_rank is None else f", rank {one.first_rank} failed first"
    failure = f": {one.failure}" if one.failure else ""
    return (
        f"group {one.group} {WORDS[one.outcome]} {age(one.time, now)} ago{first} (pod {one.failed_pod or '-'}{failure})"
    )


def brief(one: Episode, now: datetime, lws: str) -> list[str]:
    """Return what happened, the last lines of the rank that failed first, and the command that shows the rest."""
    logs = (run for rank in one.ranks if rank.rank == one.first_rank for own in rank.containers for run in own.logs)
    said = next((run for run in logs if run), ())
    return [
        f"Last recorded failure: {sentence(one, now)}",
        *(f"  {line}" for line in said[-FEW_LINES:]),
        f"  {lws} history -n {one.namespace} {one.place} shows all of it",
    ]


def lines(one: Episode, now: datetime) -> Iterator[str]:
    """Yield an episode in full: what happened, the revision, how each rank ended, events, and the logs."""
    yield f"{one.place}: {sentence(one, now)}"
    yield f"Time: {one.time}"
    if one.recreations:
        yield f"Failures in a row: {one.recreations}; not recreated before {one.recreate_after}"
    if one.revision is not None:
        yield f"Revision: {one.revision.number} ({one.revision.key}), made {one.revision.created}"
        if one.revision.changes:
            yield f"What it changed of revision {one.revision.before}:"
            yield from (f"  {change}" for change in one.revision.changes)
    yield from (f"Note: {note}" for note in one.notes)
    if one.masked:
        yield f"Note: what looks like a secret is replaced by [masked], {counted(one.masked, 'time')}"
    yield ""
    yield from output.table(
        ("RANK", "POD", "NODE", "CONTAINER", "RESTARTS", "ENDS"),
        [
            (str(rank.rank), rank.pod, rank.node or "-", container.name, str(container.restarts), _ends(container.ends))
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
    for rank in one.ranks:
        for container in rank.containers:
            yield from _logs(rank, container)


def _logs(rank: RankEnd, container: ContainerEnd) -> Iterator[str]:
    for number, run in enumerate(container.logs, 1):
        which = f", run {number} of {len(container.logs)}" if len(container.logs) > 1 else ""
        yield ""
        yield f"Log of rank {rank.rank} ({rank.pod}, {container.name}{which}), the last {counted(len(run), 'line')}:"
        yield from (f"  {line}" for line in run)


def _row(one: Episode, now: datetime) -> tuple[str, ...]:
    first = "-" if one.first_rank is None else str(one.first_rank)
    return one.place, age(one.time, now), one.outcome, first, one.failure


def _ends(found: Sequence[RunEnd]) -> str:
    return ", ".join(f"{end.exit_code} {end.reason}".rstrip() for end in found) or "-"
