"""Formats episodes as a table, as a complete report, or as a few lines about the last episode. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from kuberuntime.objects import errorlines
from leaderworkerset.api.episode import Episode
from lwsctl.cli.views import output
from lwsctl.views.episodewording import circumstance_lines, describe_terminations, log_blocks, sentence
from lwsctl.views.wording import age

HEADER: Final = ("EPISODE", "AGE", "OUTCOME", "FIRST", "FAILURE")

FEW_LINES: Final = 5


def episode_table(episodes: Sequence[Episode], now: datetime, *, with_namespace: bool = False) -> list[str]:
    """Return one line per episode."""
    places = [episode.namespace for episode in episodes] if with_namespace else ()
    return output.table(HEADER, [_row(episode, now) for episode in episodes], namespaces=places)


def brief_lines(episode: Episode, now: datetime, lws: str) -> list[str]:
    """Return the failure, the last lines of the rank that failed first, and the command that shows the record."""
    logs = (
        run for rank in episode.ranks if rank.pod == episode.failed_pod for own in rank.containers for run in own.logs
    )
    last_lines = next((run for run in logs if run), ())
    return [
        f"Last recorded failure: {sentence(episode, now)}",
        *(f"  {line}" for line in errorlines.error_excerpt(last_lines, FEW_LINES) if last_lines),
        f"  use {lws} history -n {episode.namespace} {episode.label} to show the complete record",
    ]


def episode_lines(episode: Episode, now: datetime) -> Iterator[str]:
    """Yield a complete episode with the failure, the revision, the exit of each rank, events, and logs."""
    yield f"{episode.label}: {sentence(episode, now)}"
    yield from circumstance_lines(episode)
    yield ""
    yield from output.table(
        ("RANK", "POD", "NODE", "CONTAINER", "RESTARTS", "ENDS"),
        [
            (
                str(rank.rank),
                rank.pod,
                rank.node or "-",
                container.name,
                str(container.restarts),
                describe_terminations(container.ends),
            )
            for rank in episode.ranks
            for container in rank.containers
        ],
    )
    if episode.events:
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
                for event in episode.events
            ],
        )
    for title, run in log_blocks(episode):
        yield ""
        yield title
        yield from (f"  {line}" for line in run)


def _row(episode: Episode, now: datetime) -> tuple[str, ...]:
    first = "-" if episode.first_rank is None else str(episode.first_rank)
    return episode.label, age(episode.time, now), episode.outcome, first, episode.failure
