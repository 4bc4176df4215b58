"""Follows logs across container restarts and broken connections. Logs of pods that are created later are included.

No line is returned twice, because lines are requested with timestamps, and a line is dropped if it is not newer than
the pod's latest line. A broken stream is reopened while its container is running. If a node has deleted the log of a
terminated container, this is reported, and the log is not requested again.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.errors import ConnectionFailedError, ForbiddenError, KubeError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from lwsctl.observation.podlogs import LogError, LostLogError, PodLogOptions, Sink, read
from lwsctl.views.podcontainers import container_status, has_log

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
"""The maximum delay in seconds before a stream is reopened. The delay doubles after attempts without a line."""


Lost: TypeAlias = Callable[[JSONObject, LostLogError], None]
"""A function that is called with a pod and an error if the log of the pod is no longer available."""


def raise_error(_: JSONObject, error: LostLogError) -> None:
    """Raise the error."""
    raise error


class Streams(Struct):
    """The maximum number of logs that are followed concurrently, which several followers can share, or None.

    `report_full` is called once, when a rank must wait until a different log ends. `on_lost` is called for each log that
    is no longer available.
    """

    most: int | None = None
    report_full: Callable[[], None] = lambda: None
    on_lost: Lost = raise_error
    _open: set[asyncio.Task[None]] = field(default_factory=set)
    _was_full: bool = False

    def has_room(self) -> bool:
        """Return whether another stream may be opened."""
        if self.most is None or len(self._open) < self.most:
            return True
        if not self._was_full:
            self._was_full = True
            self.report_full()
        return False

    def add(self, task: asyncio.Task[None]) -> None:
        """Count a stream until its task finishes."""
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def wait_for_closed(self) -> None:
        """Wait until one of the open streams closes."""
        await asyncio.wait(self._open, return_when=asyncio.FIRST_COMPLETED)


class LatestTimestamp(Struct):
    """The timestamp of the latest log line of a pod, as printed and in comparable form."""

    stamp: bytes = b""
    moment: bytes = b""


class PodSource(Protocol):
    """A source of pods, such as the informers for one set. `object` is None after the set was deleted."""

    @property
    def pods(self) -> Informer:
        """Return the pod informer. It may also contain other pods."""

    @property
    def object(self) -> JSONObject | None:
        """Return the set."""


class ConditionCheck(Protocol):
    """An object that repeats a check after each change until the check returns a value."""

    async def wait_for(self, check: Callable[[], bool | None]) -> bool:
        """Return the first result of `check` that is not None."""


def is_deleted(obj: JSONObject | None) -> bool:
    """Return whether a set was deleted."""
    return obj is None


class LogFollower:
    """Follows the logs of selected pods in a set."""

    def __init__(
        self,
        client: Client,
        is_selected: Callable[[JSONObject], bool],
        options: PodLogOptions,
        sink: Sink,
        streams: Streams | None = None,
    ) -> None:
        self._client = client
        self._is_selected = is_selected
        self._options = replace(options, follow=True)
        self._later = replace(self._options, tail=None, since=None)
        self._sink = sink
        self._streams = streams or Streams()
        self._first: set[str] = set()
        self._seen: set[tuple[str, int]] = set()
        self._newest: defaultdict[str, LatestTimestamp] = defaultdict(LatestTimestamp)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._readers: dict[asyncio.Task[None], Callable[[], bool]] = {}
        """The task that reads the log of each run, and whether the run continues."""
        self._changed = asyncio.Event()

    async def run(
        self, objects: ConditionCheck, informers: PodSource, is_over: Callable[[JSONObject | None], bool] = is_deleted
    ) -> None:
        """Follow logs until `is_over` returns true for the set and all logs are complete.

        Previous runs are not included.
        """
        for pod in informers.pods.store.list():
            status = container_status(pod, self._options.container)
            self._seen.add((meta.uid(pod), status.get("restartCount", 0) - 1))
            self._first.add(meta.uid(pod))
        async with asyncio.TaskGroup() as tasks:

            def observe() -> bool | None:
                self._changed.set()
                self._changed = asyncio.Event()
                self._open_streams(tasks, informers)
                return True if is_over(informers.object) else None

            await objects.wait_for(observe)
            while self._open_streams(tasks, informers) or self._readers:
                await self._streams.wait_for_closed()

    async def wait_until_drained(self, timeout: float) -> None:
        """Wait for at most `timeout` seconds until the logs of terminated runs are completely read."""
        if ended_readers := [reader for reader, goes_on in self._readers.items() if not goes_on()]:
            await asyncio.wait(ended_readers, timeout=timeout)

    def _open_streams(self, tasks: asyncio.TaskGroup, informers: PodSource) -> bool:
        """Open a stream for each new run. Return whether a run must wait until another stream is closed."""
        pods = [*filter(self._is_selected, informers.pods.store.list())]
        return not all(self._open_stream(tasks, informers, pod) for pod in pods)

    def _open_stream(self, tasks: asyncio.TaskGroup, informers: PodSource, pod: JSONObject) -> bool:
        """Open a stream if the pod has a new run. Return False if the maximum number of streams is reached."""
        status = container_status(pod, self._options.container)
        uid, number = meta.uid(pod), status.get("restartCount", 0)
        if (uid, number) in self._seen or not has_log(status):
            return True
        if not self._streams.has_room():
            return False
        # If a run started and terminated between two observed pod states, its log is the previous log.
        was_missed = number > 0 and (uid, number - 1) not in self._seen and is_running(status)
        self._seen |= {(uid, number), (uid, number - 1)}

        def current() -> JSONObject | None:
            latest = informers.pods.store.get(meta.key(pod))
            return latest if latest is not None and meta.uid(latest) == uid else None

        task = tasks.create_task(self._copy(pod, number, current, after_previous=was_missed))
        self._streams.add(task)
        self._readers[task] = lambda: is_run(current(), number, self._options.container)
        task.add_done_callback(self._readers.pop)
        return True

    async def _copy(
        self, pod: JSONObject, number: int, current: Callable[[], JSONObject | None], *, after_previous: bool
    ) -> None:
        is_first = meta.uid(pod) in self._first
        self._first.discard(meta.uid(pod))
        async with self._locks[meta.uid(pod)]:
            with suppress(NotFoundError):  # the pod and its log were deleted
                if after_previous:
                    await self._copy_previous(pod)
                failure = await self._copy_run(pod, self._options if is_first else self._later)
                await self._copy_rest(pod, number, current, failure)

    async def _copy_rest(
        self, pod: JSONObject, number: int, current: Callable[[], JSONObject | None], failure: KubeError | None
    ) -> None:
        """Reopen the log while its run continues, or if the stream failed before completion (`failure`)."""
        pause = FIRST_PAUSE
        while True:
            before = self._newest[meta.uid(pod)].moment
            if failure is None:
                await self._wait_for_exit(current, number, pause)
            else:
                await asyncio.sleep(pause)
            now = current()
            is_last = failure is None or isinstance(failure, LostLogError)
            if now is None or (is_last and not is_run(now, number, self._options.container)):
                self._report(pod, failure)
                return
            if container_status(now, self._options.container).get("restartCount", 0) > number:
                await self._copy_previous(pod)  # the interrupted run has terminated; the next run has a separate reader
                return
            again = await self._copy_run(pod, self._later)
            # A stream that reached its end is complete, even if the node deletes the log before the status is
            # updated.
            failure = None if failure is None and isinstance(again, LostLogError) else again
            is_progress = self._newest[meta.uid(pod)].moment > before
            pause = FIRST_PAUSE if is_progress else min(pause * 2, LONGEST_PAUSE)

    async def _wait_for_exit(self, current: Callable[[], JSONObject | None], number: int, seconds: float) -> None:
        """Wait until the pod reports that its run terminated. This is shortly after the end of the log.

        Wait for at most `seconds`.
        """
        with suppress(TimeoutError):
            async with timeouts.within(seconds):
                while is_run(current(), number, self._options.container):
                    await self._changed.wait()

    async def _copy_previous(self, pod: JSONObject) -> None:
        self._report(pod, await self._copy_run(pod, replace(self._later, follow=False, previous=True)))

    def _report(self, pod: JSONObject, failure: KubeError | None) -> None:
        if isinstance(failure, LostLogError):
            self._streams.on_lost(pod, failure)

    async def _copy_run(self, pod: JSONObject, options: PodLogOptions) -> KubeError | None:
        """Pass on new lines of a run. If the end of the log was not reached, return the reason.

        The run may change in the meantime. If a log is temporarily unreadable because its pod is being deleted or
        restarted, it may be readable at the next attempt. Missing permission to read a log is an error.
        """
        newest = self._newest[meta.uid(pod)]
        bound = newest.moment
        run_options = replace(options, timestamps=True, since_time=newest.stamp.decode("ascii", errors="replace"))
        try:
            async for line in read(self._client, pod, run_options):
                stamp, _, text = line.partition(b" ")
                moment = comparable(stamp)
                if moment > bound:
                    if moment > newest.moment:
                        newest.stamp, newest.moment = stamp, moment
                    self._sink(pod, line if options.timestamps else text)
        except (ConnectionFailedError, LogError) as error:
            if isinstance(error.__cause__, ForbiddenError):
                raise
            return error
        return None


def is_run(pod: JSONObject | None, number: int, container: str | None) -> bool:
    """Return whether the current run of the container is still the same."""
    if pod is None:
        return False
    status = container_status(pod, container)
    return status.get("restartCount", 0) == number and is_running(status)


def comparable(stamp: bytes) -> bytes:
    """Return a timestamp with nine fractional digits. Such timestamps can be compared as bytes.

    >>> comparable(b"2026-01-01T00:00:00.5Z") < comparable(b"2026-01-01T00:00:00.51Z")
    True
    """
    seconds, _, fraction = stamp.rstrip(b"Z").partition(b".")
    return seconds + b"." + fraction.ljust(9, b"0")


def is_running(status: JSONObject) -> bool:
    """Return whether the container is running."""
    return "running" in (status.get("state") or {})
