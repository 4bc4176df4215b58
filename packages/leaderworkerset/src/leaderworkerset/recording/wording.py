"""Episodes as text, for the command line and the dashboard. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from leaderworkerset.recording.episode import ContainerEnd, Episode, Outcome, RankEnd, RunEnd
from leaderworkerset.views.wording import age, counted

WORDS: Final = {Outcome.FAILED: "failed", Outcome.RECREATED: "was recreated", Outcome.EXHAUSTED: "was given up"}


def sentence(one: Episode, now: datetime) -> str:
    """Return a summary of the failure in one sentence."""
    several = sum(any(end.exit_code for own in rank.containers for end in own.ends) for rank in one.ranks) > 1
    unknown = ", which rank failed first is not known" if several else ""
    first = unknown if one.first_rank is None else f", rank {one.first_rank} failed first"
    failure = f": {one.failure}" if one.failure else ""
    return (
        f"group {one.group} {WORDS[one.outcome]} {age(one.time, now)} ago{first} (pod {one.failed_pod or '-'}{failure})"
    )


def circumstances(one: Episode) -> Iterator[str]:
    """Yield when it happened, how often in a row, under which revision with which changes, and what is not shown."""
    yield f"Time: {one.time}"
    if one.recreations:
        yield f"Failures in a row: {one.recreations}; not recreated before {one.recreate_after}"
    if one.revision is not None:
        yield f"Revision: {one.revision.number} ({one.revision.key}), made {one.revision.created}"
        if one.revision.changes:
            yield f"Changes from revision {one.revision.before}:"
            yield from (f"  {change}" for change in one.revision.changes)
    yield from (f"Note: {note}" for note in one.notes)
    if one.masked:
        yield f"Note: what looks like a secret is replaced by [masked], {counted(one.masked, 'time')}"


def ends(found: Sequence[RunEnd]) -> str:
    """Return how the runs of a container ended."""
    return ", ".join(f"{end.exit_code} {end.reason}".rstrip() for end in found) or "-"


def logs(one: Episode) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the title and the lines of each log."""
    for rank in one.ranks:
        for container in rank.containers:
            for number, run in enumerate(container.logs, 1):
                yield _title(rank, container, number, run), run


def _title(rank: RankEnd, container: ContainerEnd, number: int, run: Sequence[str]) -> str:
    which = f", run {number} of {len(container.logs)}" if len(container.logs) > 1 else ""
    return f"Log of rank {rank.rank} ({rank.pod}, {container.name}{which}), the last {counted(len(run), 'line')}:"
