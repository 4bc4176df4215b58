"""Defines the synchronous client, which runs the asynchronous client in an event loop on a separate thread."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, overload

from kuberuntime.objects.meta import JSONObject
from lwsctl.client.asyncclient import ALL_LINES, AsyncClient, LogLine, LogOptions
from lwsctl.client.inspection import CommandResult, Event
from lwsctl.client.manifest import Manifest
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.leaderworkerset import View

T = TypeVar("T")


class Client:
    """A client for the LeaderWorkerSets in one namespace, for callers without an event loop.

    The first call, or `with`, opens the connection. `close`, or leaving the `with` block, closes it.

    By default, it uses the same cluster as kubectl, from $KUBECONFIG, ~/.kube/config or the service account of a pod.
    """

    def __init__(self, *, kubeconfig: str = "", context: str = "", namespace: str = "") -> None:
        self._inner = AsyncClient(kubeconfig=kubeconfig, context=context, namespace=namespace)
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._is_closed = False
        self._open()
        return self

    def _open(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the client. The first call starts the event loop."""
        if self._is_closed:
            raise RuntimeError("the client is closed; create a new client, or enter it again")
        if self._loop is not None:
            return self._loop
        loop = asyncio.new_event_loop()
        self._loop = loop
        self._thread = threading.Thread(target=loop.run_forever, name="leaderworkerset-client", daemon=True)
        self._thread.start()
        try:
            self._run(self._inner.__aenter__())
        except BaseException:
            self._stop()
            raise
        return loop

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Later calls require a new client."""
        is_open, self._is_closed = self._loop is not None, True
        if not is_open:
            return
        try:
            self._run(_cancel_other_tasks())
            self._run(self._inner.__aexit__(None, None, None))
        finally:
            self._stop()

    def apply(self, manifest: Manifest | JSONObject, *, force: bool = False) -> JSONObject:
        """Apply a LeaderWorkerSet server-side, and return the stored object.

        `force` takes ownership of fields of other managers. Ownership of fields that were set by `scale`, `lws scale`
        or `lws rollout` is always taken, as in `lws apply`.
        """
        return self._run(self._inner.apply(manifest, force=force))

    def get(self, name: str) -> View:
        """Return a LeaderWorkerSet with its groups and ranks, and the reasons of unready ranks."""
        return self._run(self._inner.get(name))

    def names(self) -> list[str]:
        """Return the names of the LeaderWorkerSets in the namespace."""
        return self._run(self._inner.names())

    @overload
    def wait(  # type: ignore[overload-overlap]  # "delete" is a text, too
        self, name: str, condition: Literal["delete"], *, timeout: float | None = 120.0
    ) -> None: ...
    @overload
    def wait(self, name: str, condition: str = "ready", *, timeout: float | None = 120.0) -> View: ...
    def wait(self, name: str, condition: str = "ready", *, timeout: float | None = 120.0) -> View | None:
        """Wait for a condition of `lws wait --for`, such as `ready`, `done`, `failed`, `delete` or `replicas=N`.

        After a failure, `ready` must last for ten seconds and longer than the failed run. `condition=Available` is met
        immediately.

        Returns the view, or None for `delete`.

        Raises `WaitTimeoutError`, whose message contains the unmet condition, and `NotFoundError` if the object does
        not exist.
        """
        return self._run(self._inner.wait(name, condition, timeout=timeout))

    def watch(self, name: str) -> Iterator[View]:
        """Yield the current view, and a view after each change, until the LeaderWorkerSet is deleted."""
        return self._iterate(self._inner.watch(name))

    def logs(self, name: str, options: LogOptions = ALL_LINES, *, follow: bool = False) -> Iterator[LogLine]:
        """Yield the log lines of the selected ranks, rank by rank.

        `follow` yields new lines until the set is deleted, complete, or past its deadline.
        """
        return self._iterate(self._inner.logs(name, options, follow=follow))

    def explain(self, place: str) -> Diagnosis:
        """Return the reason why `web`, `web/0` or `web/0/2` is not ready. Include evidence and next steps.

        `print` shows the complete text. In the desired state, the verdict is `healthy` or `complete`.
        """
        return self._run(self._inner.explain(place))

    def events(self, place: str) -> list[Event]:
        """Return the events of a LeaderWorkerSet, group or rank, the oldest first. Include events of deleted pods."""
        return self._run(self._inner.events(place))

    def exec(
        self, place: str, command: Sequence[str], *, container: str | None = None, stdin: bytes = b""
    ) -> CommandResult:
        """Execute a command in a rank until it exits. The default is the leader of the first group.

        Returns its exit code and output. Raises `KubeError` if it cannot be started.
        """
        return self._run(self._inner.exec(place, command, container=container, stdin=stdin))

    def scale(self, name: str, groups: int) -> None:
        """Set the number of groups."""
        self._run(self._inner.scale(name, groups))

    def delete(self, name: str, *, timeout: float | None = 120.0) -> None:
        """Delete a LeaderWorkerSet and wait until it is deleted. A missing LeaderWorkerSet is not an error.

        If the timeout is 0, the method does not wait.
        """
        self._run(self._inner.delete(name, timeout=timeout))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            loop = self._loop or self._open()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # for example after Ctrl-C
            raise

    def _iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """Yield the items of an asynchronous iterator. A single task iterates it from start to end.

        A separate task for each item is impossible, because task groups and timeouts belong to the task that entered
        them.
        """
        signals: asyncio.Queue[bool] = asyncio.Queue()
        results: asyncio.Queue[tuple[T] | None] = asyncio.Queue()

        async def pump() -> None:
            try:
                while await signals.get():
                    try:
                        results.put_nowait((await anext(items),))
                    except StopAsyncIteration:
                        return
            finally:
                results.put_nowait(None)
                await items.aclose()

        async def begin() -> asyncio.Task[None]:
            return asyncio.create_task(pump())

        async def following_item() -> tuple[T] | None:
            signals.put_nowait(True)
            return await results.get()

        async def finish(task: asyncio.Task[None]) -> None:
            task.cancel()
            await asyncio.wait([task])

        task = self._run(begin())
        try:
            while (item := self._run(following_item())) is not None:
                yield item[0]
        finally:
            if not task.done():
                self._run(finish(task))
            if not task.cancelled():
                task.result()

    def _stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


async def _cancel_other_tasks() -> None:
    """Cancel the tasks of open iterators, and wait until the tasks have finished."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
