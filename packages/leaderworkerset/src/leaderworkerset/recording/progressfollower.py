"""Tracks the progress of leaders, stores it in pod annotations, and detects hanging groups.

Only groups whose LeaderWorkerSet requests it are tracked (`api/runsettings.py`). The latest progress is an annotation
of the leader pod, written at most once in `pace` seconds. A group hangs if all its ranks are running, and it has made
no progress for the time that its set specifies. The logs show which rank has been silent for the longest time. In a
local cluster, the recorder also detects what each rank waits for. This is a second annotation, written once for each
hang. The pod controller recreates the group if configured.

State is stored only in annotations and logs. A new process rereads the end of the logs.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import structlog
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Query
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname, labels, progressannotations, runsettings
from leaderworkerset.api.progressannotations import Hang, Progress, SilentRank
from leaderworkerset.api.runsettings import RunSettings
from leaderworkerset.recording.logrequestlimits import LogRequestLimits

WINDOW: Final = 32
"""The number of latest steps for computing the rate. A slow start therefore has no permanent effect."""

LONGEST_LINE: Final = 4096
"""The maximum number of stored bytes of an incomplete line. Longer lines do not contain progress."""


class Steps:
    """The progress lines of a process. `newest` includes the time at which its step started."""

    def __init__(self) -> None:
        self.newest: Progress | None = None
        self._points: deque[tuple[datetime, int]] = deque(maxlen=WINDOW)

    def add(self, line: str, at: datetime) -> None:
        """Add a log line.

        Lines that are older than the latest line are ignored, for example after a log is reopened.
        """
        progress, newest = progressannotations.parse_log_line(line), self.newest
        if progress is None or (newest is not None and newest.at is not None and at < newest.at):
            return
        if newest is not None and progress.step == newest.step:
            self.newest = replace(progress, at=newest.at, rate=newest.rate)
            return
        if newest is not None and progress.step < newest.step:
            self._points.clear()  # it was restarted
        self._points.append((at, progress.step))
        self.newest = replace(progress, at=at, rate=self._rate())

    def _rate(self) -> float:
        (began, first), (ended, last) = self._points[0], self._points[-1]
        seconds = (ended - began).total_seconds()
        return (last - first) / seconds if seconds > 0 else 0.0


class LogLines:
    """Splits log chunks into lines. Long lines are truncated."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that the chunk completes."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:LONGEST_LINE]
        return lines


MOST_LEADERS: Final = 500
MOST_CONTAINERS: Final = 4
"""The maximum number of tracked leaders, and of their containers."""

LAST_LINES: Final = "200"
"""The number of earlier lines that are read to recover progress that was not stored."""

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 30.0
"""The maximum delay in seconds before a log is reopened.

The delay doubles after each attempt that returns no lines.
"""

SETTLING: Final = 0.1
"""The time in seconds to wait for further changes, because pods often change at the same time."""

SAID: Final = progressannotations.MARK.encode()

DEADLINE: Final = 2.0
"""The timeout in seconds for reading the last log line of a rank."""

WaitReason: TypeAlias = Callable[[str], tuple[str, str]]
"""Returns the reason why a pod is waiting and, if known, the address of its peer. It runs in a thread."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def no_wait_reason(_uid: str) -> tuple[str, str]:
    """Return empty strings, because Kubernetes nodes do not expose their processes."""
    return "", ""


class _Leader(Struct):
    """A tracked leader, and the annotations that were written to its pod."""

    pod: JSONObject
    steps: Steps
    written: Progress | None = None
    hang_start: datetime | None = None
    """The start time of the last hang that was written."""


class ProgressFollower:
    """Tracks the leaders of all LeaderWorkerSets with progress tracking enabled."""

    def __init__(self, client: Client, clock: Clock, *, pace: float, wait_reason: WaitReason = no_wait_reason) -> None:
        self._client = client
        self._clock = clock
        self._pace = pace
        self._waits = wait_reason
        self._sets: dict[ObjectKey, RunSettings] = {}
        self._leaders: dict[str, JSONObject] = {}
        self._groups: dict[tuple[ObjectKey, str], dict[str, JSONObject]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._request_limits = LogRequestLimits()
        self._was_full = False

    async def run(self, pods: Informer, sets: Informer) -> None:
        """Track progress until cancelled. The informers can be shared and contain additional objects."""
        for informer, subscriber in ((sets, self._on_set), (pods, self._on_pod)):
            await informer.wait_synced()
            informer.subscribe(subscriber)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._changed.wait()
                await asyncio.sleep(SETTLING)
                self._changed.clear()
                self._adjust(tasks)

    def _on_set(self, change: Change) -> None:
        key = meta.key(change.object)
        settings = runsettings.OFF if change.new is None else runsettings.read(meta.annotations(change.new))
        if settings.tracks_progress:
            self._sets[key] = settings
        elif self._sets.pop(key, None) is None:
            return
        self._changed.set()

    def _on_pod(self, change: Change) -> None:
        key, uid = _group_of(change.object), meta.uid(change.object)
        members = self._groups.setdefault(key, {})
        if change.new is None:
            members.pop(meta.name(change.object), None)
        else:
            members[meta.name(change.new)] = change.new
        if not members:
            del self._groups[key]
        if not groupname.is_leader(change.object):
            return
        if change.new is None or meta.is_deleting(change.new):
            self._leaders.pop(uid, None)
        else:
            self._leaders[uid] = change.new
        if key[0] in self._sets:
            self._changed.set()

    def _adjust(self, tasks: asyncio.TaskGroup) -> None:
        """Start tracking running leaders. Stop tracking other leaders, or all leaders if tracking is disabled."""
        if not self._sets and not self._tasks:
            return
        leader_uids = [
            uid
            for uid, pod in self._leaders.items()
            if groupname.lws_key(pod) in self._sets and _last_start(pod) is not None
        ]
        if len(leader_uids) > MOST_LEADERS and not self._was_full:
            log.warning(
                "the progress of some leaders is not tracked, because there are too many",
                followed=MOST_LEADERS,
                leaders=len(leader_uids),
            )
        self._was_full = len(leader_uids) > MOST_LEADERS
        followed_uids = set(_interleave_namespaces(leader_uids, self._leaders)[:MOST_LEADERS])
        for uid in [uid for uid, task in self._tasks.items() if uid not in followed_uids or task.done()]:
            self._tasks.pop(uid).cancel()
        for uid in followed_uids - self._tasks.keys():
            self._tasks[uid] = tasks.create_task(self._follow(uid))

    async def _follow(self, uid: str) -> None:
        """Track one leader. Errors affect only this leader."""
        pod = self._leaders[uid]
        try:
            leader = _Leader(pod, Steps())
            async with asyncio.TaskGroup() as tasks:
                for name in (*_containers(pod), *_sidecars(pod))[:MOST_CONTAINERS]:
                    tasks.create_task(self._read(pod, name, leader.steps))
                tasks.create_task(self._write_periodically(uid, leader))
        except* Exception:  # must not fail, because objects can contain any values
            log.exception("failed to track the progress of a leader", pod=str(meta.key(pod)))

    async def _read(self, pod: JSONObject, container: str, steps: Steps) -> None:
        """Read a container log, starting at its last lines, and continue after restarts and lost connections."""
        path, pause, newest = PODS.path(meta.namespace(pod), meta.name(pod), "log"), FIRST_PAUSE, ""
        while True:
            before, lines = newest, LogLines()
            beginning = ("sinceTime", newest) if newest else ("tailLines", LAST_LINES)
            query: Query = (("container", container), ("follow", "true"), ("timestamps", "true"), beginning)
            try:
                async with self._client.stream("GET", path, query) as response:
                    async for chunk in response.chunks:
                        for line in lines.feed(chunk):
                            newest = _add_log_line(steps, line) or newest
            except KubeError as error:
                log.debug("failed to read a log", pod=str(meta.key(pod)), error=str(error))
            pause = FIRST_PAUSE if newest > before else min(pause * 2, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _write_periodically(self, uid: str, leader: _Leader) -> None:
        """Write new progress periodically. A rejected write is retried at the next interval."""
        while True:
            await asyncio.sleep(self._pace)
            leader.pod = self._leaders.get(uid, leader.pod)
            try:
                await self._write_progress(leader)
            except KubeError as error:
                log.debug("failed to write progress", pod=str(meta.key(leader.pod)), error=str(error))

    async def _write_progress(self, leader: _Leader) -> None:
        newest, settings = leader.steps.newest, self._sets.get(groupname.lws_key(leader.pod), runsettings.OFF)
        if newest is not None and newest != leader.written:
            await self._write(leader.pod, {labels.PROGRESS: progressannotations.render(newest), labels.HANG: None})
            leader.written, leader.hang_start = newest, None
        if settings.timeout is None:
            return
        members = self._groups.get(_group_of(leader.pod), {}).values()
        group = sorted((pod for pod in members if not meta.is_deleting(pod)), key=lambda pod: groupname.rank(pod) or 0)
        since = last_progress(group, newest)
        if since is None or since == leader.hang_start or self._clock.now() - since < settings.timeout:
            return
        hang = await self._describe_hang(group, since)
        await self._write(leader.pod, {labels.HANG: progressannotations.render_hang(hang)})
        leader.hang_start = since
        log.info("a group does not make progress", pod=str(meta.key(leader.pod)), silent=hang.longest_silent_rank.pod)

    async def _write(self, leader: JSONObject, annotations: Mapping[str, str | None]) -> None:
        patch = {"metadata": {"uid": meta.uid(leader), "annotations": dict(annotations)}}
        await self._client.patch(PODS, meta.key(leader), patch, kind="merge")

    async def _describe_hang(self, group: Sequence[JSONObject], since: datetime) -> Hang:
        """Return the ranks with the times of their last log lines, and the reasons why they are waiting."""
        # the manager's caches do not contain addresses, because Kubernetes nodes do not expose what ranks wait for
        names = {str(address): meta.name(pod) for pod in group if (address := meta.status(pod).get("podIP"))}
        ranks = await asyncio.gather(*(self._silent_rank(pod, names) for pod in group))
        return Hang(since=since, ranks=tuple(sorted(ranks, key=lambda rank: (rank.since, rank.rank))))

    async def _silent_rank(self, pod: JSONObject, names: Mapping[str, str]) -> SilentRank:
        async with self._request_limits.acquire(pod):
            (what, peer), last = await asyncio.gather(
                asyncio.to_thread(self._waits, meta.uid(pod)), self._last_line(pod)
            )
        address = peer.rpartition(":")[0]
        words = f"{what} {names[address]} ({peer})" if address in names else f"{what} {peer}".strip()
        return SilentRank(
            pod=meta.name(pod),
            uid=meta.uid(pod),
            rank=groupname.rank(pod) or 0,
            since=max(filter(None, (last, _last_start(pod))), default=self._clock.now()),
            waits=words,
        )

    async def _last_line(self, pod: JSONObject) -> datetime | None:
        """Return the time of a rank's last log line, or None if it is unknown.

        Lines of a sidecar only count if they are progress lines.
        """
        names = [*((name, b"") for name in _containers(pod)), *((name, SAID) for name in _sidecars(pod))]
        reads = (self._read_last(pod, name, prefix) for name, prefix in names[:MOST_CONTAINERS])
        return max(filter(None, await asyncio.gather(*reads)), default=None)

    async def _read_last(self, pod: JSONObject, container: str, prefix: bytes) -> datetime | None:
        """Return the time of a container's last log line, or None if it is unknown or has a different prefix."""
        path, text = PODS.path(meta.namespace(pod), meta.name(pod), "log"), b""
        query: Query = (("container", container), ("timestamps", "true"), ("tailLines", "1"))
        try:
            async with timeouts.within(DEADLINE), self._client.stream("GET", path, query) as response:
                async for chunk in response.chunks:
                    text = (text + chunk)[:64]
        except (KubeError, TimeoutError):
            return None
        time, _, line = text.partition(b" ")
        return timestamps.read(time.decode("ascii", errors="replace")) if line.startswith(prefix) else None


def _interleave_namespaces(uids: Sequence[str], leaders: Mapping[str, JSONObject]) -> list[str]:
    """Return the leader UIDs, alternating between namespaces. Large namespaces do not exclude other namespaces."""
    before: Counter[str] = Counter()
    places = {}
    for uid in uids:
        namespace = meta.namespace(leaders[uid])
        places[uid] = before[namespace]
        before[namespace] += 1
    return sorted(uids, key=places.__getitem__)


def last_progress(group: Sequence[JSONObject], newest: Progress | None) -> datetime | None:
    """Return the time since which a group has not progressed, which is its last step or the last rank start.

    Return None if a rank is not running.
    """
    starts = [_last_start(pod) for pod in group]
    size = decimals.natural(meta.annotations(group[0]).get(labels.SIZE, "")) if group else None
    if not group or len(group) < (size or 1) or None in starts:
        return None
    return max(filter(None, [*starts, None if newest is None else newest.at]))


def _add_log_line(steps: Steps, line: bytes) -> str:
    """Add a log line with its time. Return the time as a string, or an empty string if there is none."""
    before, _, text = line.partition(b" ")
    stamp = before.decode("ascii", errors="replace")
    at = timestamps.read(stamp)
    if at is None:
        return ""
    steps.add(text.decode(errors="replace"), at)
    return stamp


def _containers(pod: JSONObject) -> list[str]:
    return sorted(str(status.get("name")) for status in meta.status(pod).get("containerStatuses") or [])


def _sidecars(pod: JSONObject) -> list[str]:
    """Return the sidecars, because sidecars can print files of other containers."""
    init_containers = meta.spec(pod).get("initContainers") or []
    return sorted(
        str(container.get("name")) for container in init_containers if container.get("restartPolicy") == "Always"
    )


def _last_start(pod: JSONObject) -> datetime | None:
    """Return the last start time of the containers in a running pod, or None if a container is not running."""
    start_times = [
        ((container_status.get("state") or {}).get("running") or {}).get("startedAt")
        for container_status in meta.status(pod).get("containerStatuses") or []
    ]
    moments = [timestamps.read(str(text)) for text in start_times]
    return None if not moments or None in moments else max(filter(None, moments))


def _group_of(pod: JSONObject) -> tuple[ObjectKey, str]:
    return groupname.lws_key(pod), groupname.group_label(pod)
