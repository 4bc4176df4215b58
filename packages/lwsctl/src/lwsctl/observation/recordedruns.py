"""The logs of runs whose pods are deleted, from the episodes that a recorder has stored.

In: a failed run that only the record of a recreation describes, and the episodes of its LeaderWorkerSet. Out: the log of that
run, from which a diagnosis is judged as if its pod still existed. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence

from kuberuntime.objects import errorlines
from leaderworkerset.api.episode import Episode
from lwsctl.diagnosis.finding import RecordedRun


def lines_of(episodes: Iterable[Episode], run: RecordedRun) -> Sequence[str]:
    """Return the lines of the newest episode of a run; empty without one."""
    newest_first = sorted(episodes, key=lambda episode: (episode.time, episode.number), reverse=True)
    return next((lines for episode in newest_first for lines in _logs(episode, run)), ())


def _logs(episode: Episode, run: RecordedRun) -> Iterator[tuple[str, ...]]:
    """Yield the logs of a run, first a log that names an error: a container may have been started again since."""
    ends = [
        container
        for rank in episode.ranks
        if rank.pod == run.pod
        for container in rank.containers
        if container.name == run.container and any(end.exit_code == run.exit_code for end in container.ends)
    ]
    logs = [log for container in ends for log in reversed(container.logs) if log]
    yield from sorted(logs, key=lambda log: not errorlines.telling(log[-errorlines.JUDGED :]).certain)
