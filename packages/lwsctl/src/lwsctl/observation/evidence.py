"""All recorded evidence for a diagnosis: the log of a failed container, or the episode of a run whose pod is deleted.

Commands, surveys, the Python client and the dashboard judge a diagnosis here, so that all of them name the same error.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.episode import Episode
from leaderworkerset.decisions.episoderecords import episode_place, stored_episodes, unpacked_episode
from lwsctl.diagnosis.finding import Diagnosis
from lwsctl.diagnosis.judging import with_lines
from lwsctl.observation.podlogs import judged_lines
from lwsctl.observation.recordedruns import lines_of

PATIENCE = 5.0
"""Seconds that the episodes may take to be read."""

ReadEpisodes: TypeAlias = Callable[[ObjectKey], Awaitable[Sequence[Episode]]]
"""Returns the recorded failures of a LeaderWorkerSet."""


class RunLines(Struct, frozen=True):
    """The last lines of one run of a container, masked; `is_of_record` if its pod is deleted."""

    pod: str
    container: str
    lines: Sequence[str]
    is_of_record: bool = False


async def judged(client: Client, diagnosis: Diagnosis, read: ReadEpisodes | None = None) -> Diagnosis:
    """Return a diagnosis judged from all evidence that the user may read; unchanged if that explains no more."""
    return with_run(diagnosis, await find(client, diagnosis, read))


def with_run(diagnosis: Diagnosis, run: RunLines | None) -> Diagnosis:
    """Return a diagnosis judged from the lines of its run; unchanged without any."""
    if run is None:
        return diagnosis
    return replace(with_lines(diagnosis, run.pod, run.container, run.lines), is_of_record=run.is_of_record)


async def find(client: Client, diagnosis: Diagnosis, read: ReadEpisodes | None = None) -> RunLines | None:
    """Return the lines that explain a diagnosis better; None if it needs none, or if they cannot be read."""
    run = diagnosis.recorded
    if diagnosis.log is not None and (lines := await judged_lines(client, diagnosis.log)):
        return RunLines(meta.name(diagnosis.log.pod), diagnosis.log.container, lines)
    if run is None:
        return None
    key = ObjectKey(diagnosis.namespace, diagnosis.target.partition("/")[0])
    with suppress(KubeError, OSError, TimeoutError):
        async with timeouts.within(PATIENCE):
            episodes = await (read(key) if read is not None else stored(client, key))
            if lines_of_run := lines_of(episodes, run):
                return RunLines(run.pod, run.container, lines_of_run, is_of_record=True)
    return None


def identity(diagnosis: Diagnosis) -> Hashable:
    """Return the identity of the run that explains a diagnosis, whose lines do not change; None without one."""
    if diagnosis.log is not None:
        pod, container = diagnosis.log.pod, diagnosis.log.container
        restarts = [status.get("restartCount") for status in meta.status(pod).get("containerStatuses") or []]
        return meta.uid(pod), container, diagnosis.log.previous, *restarts
    run = diagnosis.recorded
    return None if run is None else (diagnosis.statement, run.pod, run.container, run.exit_code)


async def stored(client: Client, key: ObjectKey) -> list[Episode]:
    """Return the episodes of a LeaderWorkerSet that the manager stored in ConfigMaps."""
    return [
        episode
        async for obj in stored_episodes(client, key.namespace, key.name)
        if episode_place(obj) and (episode := unpacked_episode(obj))
    ]
