"""Defines the asynchronous client. It applies, reads and watches LeaderWorkerSets, and waits for conditions.

Task groups and timeouts belong to the task that enters them. Therefore, watches run in a separate task, and a caller
can leave an iterator at any point.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, overload

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import labels
from leaderworkerset.api.groupname import group_and_rank
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.client import inspection
from lwsctl.client.inspection import CommandResult, Event, OpenChannels
from lwsctl.client.manifest import Manifest
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import selectedpods
from lwsctl.observation.podlogs import LogError, PodLogOptions, read
from lwsctl.rollout import ownfields
from lwsctl.views import unmetconditions
from lwsctl.views.outcome import is_over
from lwsctl.views.selection import Filter, Selection

T = TypeVar("T")

MOST_LINES: Final = 100_000
"""The maximum number of unread log lines, to limit memory usage. If it is exceeded, the reader receives an error."""


async def iterate_callback(
    produce: Callable[[Callable[[T], None]], Coroutine[Any, Any, None]], *, newest_only: bool = False
) -> AsyncGenerator[T, None]:
    """Yield the items that `produce` passes to a callback, until `produce` returns. Raise its errors.

    If `newest_only` is set, a new item replaces the unread item.
    """
    items: asyncio.Queue[tuple[T] | None] = asyncio.Queue()

    def put(item: T) -> None:
        if newest_only and not items.empty():
            items.get_nowait()
        if items.qsize() >= MOST_LINES:
            raise LogError(f"{MOST_LINES} unread lines; read faster, or follow fewer ranks")
        items.put_nowait((item,))

    task = asyncio.create_task(produce(put))
    task.add_done_callback(lambda _: items.put_nowait(None))
    try:
        while (item := await items.get()) is not None:
            yield item[0]
        await unwrap_single_error(task)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def unwrap_single_error(work: Awaitable[T]) -> T:
    """Await a task. If it raises an exception group with a single error, raise only this error."""
    try:
        return await work
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from group


AGAIN: Final = 1.0
"""The interval in seconds between checks of a condition if there are no changes."""

MANAGER: Final = "lws-client"
"""The field manager for applied objects."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line in a rank's log."""

    group: int | str
    rank: int
    pod: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The selected lines and ranks.

    If `group` or `rank` is None, all groups or ranks are selected. `since` is in seconds.
    """

    group: int | str | None = None
    rank: int | None = None
    container: str | None = None
    tail: int | None = None
    since: int | None = None
    previous: bool = False


ALL_LINES: Final = LogOptions()


class AsyncClient:
    """A client for the LeaderWorkerSets in one namespace, to use as an asynchronous context manager.

    By default, it uses the same cluster as kubectl, from $KUBECONFIG, ~/.kube/config or the service account of a pod.
    """

    def __init__(self, *, kubeconfig: str = "", context: str = "", namespace: str = "") -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._namespace = namespace
        self._client: Client | None = None
        self._channels: OpenChannels | None = None

    @classmethod
    def over(cls, client: Client, namespace: str) -> Self:
        """Return a client for an open connection, which the caller must close."""
        instance = cls(namespace=namespace)
        instance._client = client
        return instance

    async def __aenter__(self) -> Self:
        from kuberuntime.access import kubeconfig
        from kuberuntime.client.http import HTTPTransport

        access = kubeconfig.load(os.environ, kubeconfig=self._kubeconfig, context=self._context)
        self._namespace = self._namespace or access.namespace
        transport = HTTPTransport(access, user_agent=MANAGER)
        self._client, self._channels = Client(transport, field_validation="Strict"), transport.channels
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client, self._channels = self._client, None, None
        if client is not None:
            await client.close()

    async def apply(self, manifest: Manifest | JSONObject, *, force: bool = False) -> JSONObject:
        """Apply a LeaderWorkerSet server-side, and return the stored object.

        `force` takes ownership of fields of other managers. Ownership of fields that were set by `scale`, `lws scale`
        or `lws rollout` is always taken, as in `lws apply`.
        """
        obj = manifest.build() if isinstance(manifest, Manifest) else manifest
        placed = obj | {"metadata": {"namespace": self._namespace} | meta.metadata(obj)}
        try:
            return await self._open.apply(LEADERWORKERSETS, placed, manager=MANAGER, force=force)
        except ConflictError as error:
            if not ownfields.has_only_own_conflicts(error):
                raise
            return await self._open.apply(LEADERWORKERSETS, placed, manager=MANAGER, force=True)

    async def get(self, name: str) -> View:
        """Return a LeaderWorkerSet with its groups and ranks, and the reasons of unready ranks."""
        from lwsctl.observation import lists
        from lwsctl.observation.lists import Lists

        view = await inspection.view_of(self._open, self._namespace, name)
        (explained_view,) = await lists.with_evidence(Lists(self._open), [view], self._namespace)
        return explained_view

    async def names(self) -> list[str]:
        """Return the names of the LeaderWorkerSets in the namespace."""
        listing = await self._open.list(LEADERWORKERSETS, namespace=self._namespace)
        return sorted(map(meta.name, listing.items))

    @overload
    async def wait(  # type: ignore[overload-overlap]  # "delete" is a text, too
        self, name: str, condition: Literal["delete"], *, timeout: float | None = 120.0
    ) -> None: ...
    @overload
    async def wait(self, name: str, condition: str = "ready", *, timeout: float | None = 120.0) -> View: ...
    async def wait(self, name: str, condition: str = "ready", *, timeout: float | None = 120.0) -> View | None:
        """Wait for a condition of `lws wait --for`, such as `ready`, `done`, `failed`, `delete` or `replicas=N`.

        After a failure, `ready` must last for ten seconds and longer than the failed run. `condition=Available` is met
        immediately.

        Returns the view, or None for `delete`.

        Raises `WaitTimeoutError`, whose message contains the unmet condition, and `NotFoundError` if the object does
        not exist.
        """
        from lwsctl.observation.conditionwatch import SetInformers, wait_for

        check = unmetconditions.condition_check(condition, SystemClock().now)
        if condition != "delete":
            await self._open.get(LEADERWORKERSETS, self._key(name))
        informers = SetInformers(self._open, self._key(name))
        last_view = await unwrap_single_error(wait_for(informers, check, timeout, every=AGAIN))
        return last_view if isinstance(last_view, View) else None

    def watch(self, name: str) -> AsyncGenerator[View, None]:
        """Yield the current view, and a view after each change, until the LeaderWorkerSet is deleted.

        A slow reader skips to the latest view.
        """
        return iterate_callback(lambda put: self._watch(name, put), newest_only=True)

    async def _watch(self, name: str, put: Callable[[View], None]) -> None:
        from lwsctl.observation.conditionwatch import SetInformers, watch_conditions

        informers = SetInformers(self._open, self._key(name))
        last: View | None = None

        def look() -> bool | None:
            nonlocal last
            current = informers.view()
            if current is None:
                return True
            if current != last:
                last = current
                put(current)
            return None

        async with watch_conditions(*informers.all) as objects:
            await objects.wait_for(look)

    async def logs(
        self, name: str, options: LogOptions = ALL_LINES, *, follow: bool = False
    ) -> AsyncGenerator[LogLine, None]:
        """Yield the log lines of the selected ranks, rank by rank.

        `follow` yields new lines until the set is deleted, complete, or past its deadline.

        If a node has deleted a log, `LogError` is raised, with `follow` at the end.
        """
        pod_filter = Filter(Selection(name, options.group, options.rank))
        log_options = PodLogOptions(
            container=options.container, tail=options.tail, since=options.since, previous=options.previous
        )
        if follow:
            followed: AsyncGenerator[LogLine, None] = iterate_callback(
                lambda put: self._follow(name, pod_filter, log_options, put)
            )
            async with aclosing(followed) as lines:
                async for line in lines:
                    yield line
            return
        await self._open.get(LEADERWORKERSETS, self._key(name))
        for pod in await selectedpods.read(self._open, self._namespace, pod_filter):
            async for text in read(self._open, pod, log_options):
                yield log_line(pod, text)

    async def _follow(
        self, name: str, pod_filter: Filter, options: PodLogOptions, put: Callable[[LogLine], None]
    ) -> None:
        from lwsctl.observation.conditionwatch import SetInformers, watch_conditions
        from lwsctl.observation.logfollower import LogFollower, Streams

        await self._open.get(LEADERWORKERSETS, self._key(name))
        informers = SetInformers(self._open, self._key(name))
        lost_logs: list[LogError] = []
        streams = Streams(on_lost=lambda _, error: lost_logs.append(error))
        async with watch_conditions(*informers.all) as objects:
            follower = LogFollower(
                self._open, pod_filter.covers, options, lambda pod, line: put(log_line(pod, line)), streams
            )
            await follower.run(objects, informers, is_over)
        if lost_logs:
            raise lost_logs[0]

    async def explain(self, place: str) -> Diagnosis:
        """Return the reason why `web`, `web/0` or `web/0/2` is not ready. Include evidence and next steps.

        `print` shows the complete text. In the desired state, the verdict is `healthy` or `complete`.
        """
        return await unwrap_single_error(inspection.explain(self._open, self._namespace, place))

    async def events(self, place: str) -> list[Event]:
        """Return the events of a LeaderWorkerSet, group or rank, the oldest first. Include events of deleted pods."""
        return await inspection.events(self._open, self._namespace, place)

    async def exec(
        self, place: str, command: Sequence[str], *, container: str | None = None, stdin: bytes = b""
    ) -> CommandResult:
        """Execute a command in a rank until it exits. The default is the leader of the first group.

        Returns its exit code and output. Raises `KubeError` if it cannot be started.
        """
        if self._channels is None:
            raise RuntimeError("the client has no connection; create a client with AsyncClient()")
        pod = await inspection.pod_at(self._open, self._namespace, place)
        return await inspection.execute(self._channels, pod, command, container=container, stdin=stdin)

    async def scale(self, name: str, groups: int) -> None:
        """Set the number of groups."""
        patch, key = {"spec": {"replicas": groups}}, self._key(name)
        await self._open.patch(
            LEADERWORKERSETS, key, patch, kind="merge", subresource="scale", manager=labels.SCALE_MANAGER
        )

    async def delete(self, name: str, *, timeout: float | None = 120.0) -> None:
        """Delete a LeaderWorkerSet and wait until it is deleted. A missing LeaderWorkerSet is not an error.

        If the timeout is 0, the method does not wait.
        """
        try:
            await self._open.delete(LEADERWORKERSETS, self._key(name), propagation="Foreground")
        except NotFoundError:
            return
        if timeout != 0:
            await self.wait(name, "delete", timeout=timeout)

    @property
    def _open(self) -> Client:
        if self._client is None:
            raise RuntimeError("the client is not open; use it as a context manager")
        return self._client

    def _key(self, name: str) -> ObjectKey:
        return ObjectKey(self._namespace, name)


def log_line(pod: JSONObject, text: bytes) -> LogLine:
    """Return a line with its group and rank."""
    group, rank = group_and_rank(pod) or (-1, -1)
    return LogLine(group, rank, meta.name(pod), text.decode(errors="replace"))
