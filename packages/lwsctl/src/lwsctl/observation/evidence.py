"""Finds evidence for a diagnosis, such as the log of a failed container or the record of a deleted pod.

Commands, the Python client and the dashboard use this module, so that all of them report the same error.
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
from lwsctl.diagnosis.logerrors import with_lines
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.observation.podlogs import log_tail
from lwsctl.observation.recordedruns import recorded_lines

PATIENCE = 5.0
"""The maximum time in seconds for reading recorded failures."""

ReadEpisodes: TypeAlias = Callable[[ObjectKey], Awaitable[Sequence[Episode]]]
"""A function that returns the recorded failures of a LeaderWorkerSet."""


class RunLines(Struct, frozen=True):
    """The masked last lines of a container run. `is_from_record` is set if the pod of the run is deleted."""

    pod: str
    container: str
    lines: Sequence[str]
    is_from_record: bool = False


async def with_evidence(client: Client, diagnosis: Diagnosis, read: ReadEpisodes | None = None) -> Diagnosis:
    """Return a diagnosis with all evidence that the user may read. If there is no new evidence, it is unchanged."""
    return with_run_lines(diagnosis, await find_run_lines(client, diagnosis, read))


def with_run_lines(diagnosis: Diagnosis, run: RunLines | None) -> Diagnosis:
    """Return a diagnosis with the error in the log lines of its run. If there are no lines, it is unchanged."""
    if run is None:
        return diagnosis
    return replace(with_lines(diagnosis, run.pod, run.container, run.lines), is_of_record=run.is_from_record)


async def find_run_lines(client: Client, diagnosis: Diagnosis, read: ReadEpisodes | None = None) -> RunLines | None:
    """Return the log lines that explain a diagnosis better, or None if they are not needed or not readable."""
    run = diagnosis.recorded
    if diagnosis.log is not None and (lines := await log_tail(client, diagnosis.log)):
        return RunLines(meta.name(diagnosis.log.pod), diagnosis.log.container, lines)
    if run is None:
        return None
    key = ObjectKey(diagnosis.namespace, diagnosis.target.partition("/")[0])
    with suppress(KubeError, OSError, TimeoutError):
        async with timeouts.within(PATIENCE):
            episodes = await (read(key) if read is not None else list_stored_episodes(client, key))
            if lines_of_run := recorded_lines(episodes, run):
                return RunLines(run.pod, run.container, lines_of_run, is_from_record=True)
    return None


def run_identity(diagnosis: Diagnosis) -> Hashable:
    """Return the identifier of the run whose final log lines explain a diagnosis, or None if there is none."""
    if diagnosis.log is not None:
        pod, container = diagnosis.log.pod, diagnosis.log.container
        restarts = [status.get("restartCount") for status in meta.status(pod).get("containerStatuses") or []]
        return meta.uid(pod), container, diagnosis.log.is_previous_run, *restarts
    run = diagnosis.recorded
    return None if run is None else (diagnosis.statement, run.pod, run.container, run.exit_code)


async def list_stored_episodes(client: Client, key: ObjectKey) -> list[Episode]:
    """Return the failures of a LeaderWorkerSet that the manager stored in ConfigMaps."""
    return [
        episode
        async for obj in stored_episodes(client, key.namespace, key.name)
        if episode_place(obj) and (episode := unpacked_episode(obj))
    ]
