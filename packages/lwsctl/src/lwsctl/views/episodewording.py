"""Describes recorded failures in text form, for the command line and the dashboard. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from leaderworkerset.api.episode import Episode, RecordedContainer, RecordedRank, RunTermination
from lwsctl.views.wording import age, format_count


def sentence(episode: Episode, now: datetime) -> str:
    """Return a one-sentence summary of the failure."""
    several = sum(any(end.exit_code for own in rank.containers for end in own.ends) for rank in episode.ranks) > 1
    unknown = "; the rank that failed first is unknown" if several else ""
    first = unknown if episode.first_rank is None else f", rank {episode.first_rank} failed first"
    failure = f": {episode.failure}" if episode.failure else ""
    return f"group {episode.group} {episode.outcome.description} {age(episode.time, now)} ago{first} (pod {episode.failed_pod or '-'}{failure})"


def circumstance_lines(episode: Episode) -> Iterator[str]:
    """Yield the time, the number of consecutive failures, the revision and its changes, and omitted details."""
    yield f"Time: {episode.time}"
    if episode.recreations:
        yield f"Consecutive failures: {episode.recreations}; not recreated before {episode.recreate_after}"
    if episode.revision is not None:
        yield f"Revision: {episode.revision.number} ({episode.revision.key}), created {episode.revision.created}"
        if episode.revision.changes:
            yield f"Changes from revision {episode.revision.before}:"
            yield from (f"  {change}" for change in episode.revision.changes)
    yield from (f"Note: {note}" for note in episode.notes)
    if episode.masked:
        yield f"Note: values that look like secrets are replaced with [masked], {format_count(episode.masked, 'time')}"


def describe_terminations(runs: Sequence[RunTermination]) -> str:
    """Return a description of how the runs of a container terminated."""
    return ", ".join(f"{end.exit_code} {end.reason}".rstrip() for end in runs) or "-"


def log_blocks(episode: Episode) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the title and the lines of each log."""
    for rank in episode.ranks:
        for container in rank.containers:
            for number, run in enumerate(container.logs, 1):
                yield _title(rank, container, number, run), run


def _title(rank: RecordedRank, container: RecordedContainer, number: int, run: Sequence[str]) -> str:
    which = f", run {number} of {len(container.logs)}" if len(container.logs) > 1 else ""
    return f"Log of rank {rank.rank} ({rank.pod}, {container.name}{which}), the last {format_count(len(run), 'line')}:"
