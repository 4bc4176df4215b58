"""Finds the logs of deleted pods in recorded failures.

The input is a failed run that only the recreation record describes, and the episodes of its LeaderWorkerSet. The
output is the log of this run, which a diagnosis uses as if the pod still existed. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence

from kuberuntime.objects import errorlines
from leaderworkerset.api.episode import Episode
from lwsctl.model.diagnosis import RecordedRun


def recorded_lines(episodes: Iterable[Episode], run: RecordedRun) -> Sequence[str]:
    """Return the lines of the latest episode of a run, or no lines if there is no episode."""
    newest_first = sorted(episodes, key=lambda episode: (episode.time, episode.number), reverse=True)
    return next((lines for episode in newest_first for lines in _matching_logs(episode, run)), ())


def _matching_logs(episode: Episode, run: RecordedRun) -> Iterator[tuple[str, ...]]:
    """Yield the logs of a run. A log with an error is first, because a container may have restarted."""
    ends = [
        container
        for rank in episode.ranks
        if rank.pod == run.pod
        for container in rank.containers
        if container.name == run.container and any(end.exit_code == run.exit_code for end in container.ends)
    ]
    logs = [log for container in ends for log in reversed(container.logs) if log]
    yield from sorted(logs, key=lambda log: not errorlines.first_error(log[-errorlines.JUDGED :]).is_certain)
