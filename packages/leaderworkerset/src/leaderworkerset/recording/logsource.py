"""Reads logs for the recorder from kubelet files on this machine or from the API.

Through the API, a log is read as soon as the failure of its pod is observed, and kept in memory until its episode is
written. Each request waits for its turn (`logrequestlimits.py`), and then has a deadline. A later log of the same run
replaces an earlier one unless it is shorter.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

import structlog

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.texts import removedlogs
from leaderworkerset.api import episode
from leaderworkerset.recording.episodebuilder import Logs
from leaderworkerset.recording.logrequestlimits import LogRequestLimits

LOG_BYTES: Final = 32 * 1024
EPISODE_BYTES: Final = 1024 * 1024
"""The maximum size in bytes of one log, and of all logs in an episode, which is divided equally."""

DEADLINE: Final = 2.0
"""The timeout of a log request in seconds."""

PATIENCE: Final = 8.0
"""The maximum time in seconds that an episode waits for logs. Later logs are added in an update."""

READ_BYTES: Final = EPISODE_BYTES
"""The maximum size of a response in bytes.

It exceeds the stored size, because the API omits the end of a long log.
"""

REMEMBERED_BYTES: Final = 16 * 1024 * 1024
"""The maximum size in bytes of all logs in memory. The oldest logs are discarded."""

MOST_RUNS: Final = 2
"""The maximum number of container runs in an episode, which is the number that a kubelet retains."""

MOST_FAULTS: Final = 1000
"""The maximum number of pods for which log errors are stored. The oldest errors are discarded."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

ReadFiles: TypeAlias = Callable[[JSONObject, str, int, int], Sequence[bytes]]
"""Returns the last lines of each retained container run, with line and size limits. It runs in a thread."""


class LogSource(Protocol):
    """Reads the last lines of containers."""

    def prefetch(self, pods: Sequence[JSONObject]) -> None:
        """Request the logs of these pods in advance, because the pods might be deleted soon."""

    def forget_pod(self, pod: JSONObject) -> None:
        """Record that a pod was deleted. A new pod can then have the same name."""

    async def read(self, pods: Sequence[JSONObject]) -> tuple[Logs, Sequence[str]]:
        """Return the logs of pods, and notes about missing logs."""


class FileLogs:
    """Reads the kubelet's log files on this machine."""

    def __init__(self, read: ReadFiles) -> None:
        self._read = read

    def prefetch(self, pods: Sequence[JSONObject]) -> None:
        """Do nothing, because the files are not deleted."""

    def forget_pod(self, pod: JSONObject) -> None:
        """Do nothing, because file names contain the UID."""

    async def read(self, pods: Sequence[JSONObject]) -> tuple[Logs, Sequence[str]]:
        """Return the logs of pods."""
        return await asyncio.to_thread(self._read_all, pods), ()

    def _read_all(self, pods: Sequence[JSONObject]) -> Logs:
        size = max_log_size(pods)
        return {
            (meta.uid(pod), name): [run.decode(errors="replace") for run in self._read(pod, name, episode.LINES, size)]
            for pod, name in _containers(pods)
        }


class _Run(NamedTuple):
    """A container run, with its identity, and whether its log requires the `previous` query parameter."""

    container: str
    identity: str
    is_previous: bool


class ApiLogs:
    """Reads logs from `pods/log` and stores the results."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._request_limits = LogRequestLimits()
        self._kept: dict[tuple[str, str], dict[str, bytes]] = {}
        """The runs of each container, oldest first, by pod UID and container name."""
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._faults: dict[str, str] = {}
        """The last log request errors by pod UID."""

    def prefetch(self, pods: Sequence[JSONObject]) -> None:
        """Read the logs of pods in the background, unless a read is in progress."""
        size = max_log_size(pods)
        for pod in pods:
            uid = meta.uid(pod)
            if uid not in self._reading:
                task = self._reading[uid] = asyncio.create_task(self._read(pod, size))
                task.add_done_callback(partial(self._finish_read, uid))

    def forget_pod(self, pod: JSONObject) -> None:
        """Stop requesting the logs of a pod, because a new pod might have the same name."""
        if (task := self._reading.get(meta.uid(pod))) is not None:
            task.cancel()

    async def read(self, pods: Sequence[JSONObject]) -> tuple[Logs, Sequence[str]]:
        """Return the available logs of the pods when there are no pending requests, or when `PATIENCE` expires."""
        if running := [task for pod in pods if (task := self._reading.get(meta.uid(pod)))]:
            await asyncio.wait(running, timeout=PATIENCE)
        logs: dict[tuple[str, str], Sequence[str]] = {
            (meta.uid(pod), name): [run.decode(errors="replace") for run in runs.values() if run][-MOST_RUNS:]
            for pod, name in _containers(pods)
            if (runs := self._kept.get((meta.uid(pod), name)))
        }
        have = {uid for (uid, _), runs in logs.items() if runs}
        faults = [
            f"failed to read the logs of pod {meta.name(pod)}: {self._faults[meta.uid(pod)]}"
            for pod in pods
            if meta.uid(pod) in self._faults and meta.uid(pod) not in have
        ]
        return logs, faults

    def _finish_read(self, uid: str, task: asyncio.Task[None]) -> None:
        del self._reading[uid]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("failed to read logs", uid=uid, exc_info=error)

    async def _read(self, pod: JSONObject, max_bytes: int) -> None:
        uid = meta.uid(pod)
        self._faults.pop(uid, None)
        async with asyncio.TaskGroup() as tasks:
            for run in _runs(pod):
                self._kept.setdefault((uid, run.container), {}).setdefault(run.identity, b"")
                tasks.create_task(self._read_run(pod, run, max_bytes))

    async def _read_run(self, pod: JSONObject, run: _Run, max_bytes: int) -> None:
        query = (
            ("container", run.container),
            ("tailLines", str(episode.LINES)),
            ("limitBytes", str(READ_BYTES)),
            *((("previous", "true"),) if run.is_previous else ()),
        )
        path = PODS.path(meta.namespace(pod), meta.name(pod), "log")
        text = b""
        try:
            async with (
                self._request_limits.acquire(pod),
                timeouts.within(DEADLINE),
                self._client.stream("GET", path, query) as response,
            ):
                async for chunk in response.chunks:
                    text = (text + chunk)[-max_bytes:]
            if removedlogs.is_removed(text):
                text = self._record_error(meta.uid(pod), text.decode(errors="replace"))
        except KubeError as error:
            self._record_error(meta.uid(pod), str(error))
        except TimeoutError:
            self._record_error(meta.uid(pod), f"no response within {DEADLINE:g} s")
        finally:  # a partial log is better than no log
            self._store_log((meta.uid(pod), run.container), run.identity, text)

    def _store_log(self, container: tuple[str, str], identity: str, text: bytes) -> None:
        runs = self._kept.setdefault(container, {})
        if len(text) >= len(runs.get(identity, b"")):
            runs[identity] = text
        while sum(len(text) for runs in self._kept.values() for text in runs.values()) > REMEMBERED_BYTES:
            del self._kept[next(iter(self._kept))]

    def _record_error(self, uid: str, text: str) -> bytes:
        """Record the reason why a log could not be read. Return an empty log."""
        self._faults[uid] = text
        if len(self._faults) > MOST_FAULTS:
            del self._faults[next(iter(self._faults))]
        return b""


def max_log_size(pods: Sequence[JSONObject]) -> int:
    """Return the maximum size of each log in an episode in bytes."""
    return min(LOG_BYTES, EPISODE_BYTES // max(sum(1 for _ in _containers(pods)), 1))


def _containers(pods: Sequence[JSONObject]) -> Iterator[tuple[JSONObject, str]]:
    for pod in pods:
        for container_status in podstate.container_statuses(pod):
            yield pod, str(container_status.get("name"))


def _runs(pod: JSONObject) -> Iterator[_Run]:
    """Yield the last run or the last two runs of each container. A waiting container has no current run."""
    for container_status in podstate.container_statuses(pod):
        name, state = str(container_status.get("name")), container_status.get("state") or {}
        if last := (container_status.get("lastState") or {}).get("terminated"):
            yield _Run(name, _run_id(last, "previous"), is_previous=True)
        if ended := state.get("terminated"):
            yield _Run(name, _run_id(ended, "present"), is_previous=False)
        elif state.get("running") is not None:
            yield _Run(name, _run_id(container_status, "present"), is_previous=False)


def _run_id(run: JSONObject, default: str) -> str:
    """Return the identity of a run, which is its container ID."""
    return str(run.get("containerID") or default)
