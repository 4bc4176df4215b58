"""The logs of runs whose pods are deleted, from the episodes that a recorder has stored.

In: a diagnosis whose failed run only the record of a recreation describes, and the episodes of its LeaderWorkerSet. Out: the
diagnosis, judged from the log of that run as if its pod still existed.
"""

from collections.abc import Iterable, Iterator

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.errors import APIError
from kuberuntime.objects import errorlines
from leaderworkerset.api.episode import Episode
from leaderworkerset.decisions.episoderecords import episode_place, stored_episodes, unpacked_episode
from leaderworkerset.diagnosis.finding import Diagnosis, RecordedRun
from leaderworkerset.diagnosis.judging import with_lines

PATIENCE = 5.0
"""Seconds that the API server may take to return the episodes."""


def with_episodes(diagnosis: Diagnosis, episodes: Iterable[Episode]) -> Diagnosis:
    """Return a diagnosis judged from the newest episode of its recorded run; unchanged without one."""
    run = diagnosis.recorded
    if run is None:
        return diagnosis
    newest_first = sorted(episodes, key=lambda episode: (episode.time, episode.number), reverse=True)
    lines = next((lines for episode in newest_first for lines in _logs(episode, run)), ())
    return with_lines(diagnosis, run.pod, run.container, lines)


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


async def recorded(client: Client, diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis judged from the ConfigMaps of a recorder, if it needs them and the user may read them."""
    if diagnosis.recorded is None:
        return diagnosis
    lws = diagnosis.target.partition("/")[0]
    try:
        async with timeouts.within(PATIENCE):
            episodes = [
                episode
                async for obj in stored_episodes(client, diagnosis.namespace, lws)
                if episode_place(obj) and (episode := unpacked_episode(obj))
            ]
    except (APIError, TimeoutError):
        return diagnosis
    return with_episodes(diagnosis, episodes)
