"""Tests that followed logs neither repeat nor lose lines after restarts and disconnections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from testkit import objects

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import labels
from lwsctl.observation.logfollower import LogFollower, Streams
from lwsctl.observation.podlogs import LogError, LostLogError, PodLogOptions

pytestmark = pytest.mark.virtual_time

STATUSES = {"not now": 400, "forbidden": 403}
"""The HTTP status of log requests that fail, for each state of the test script."""


@dataclass
class Kubelet:
    """A transport with scripted logs that stop, disconnect or remain open. Each line contains its second."""

    scripts: list[tuple[list[int], str]]
    requests: list[Request] = field(default_factory=list)
    before_end: Callable[[], None] = lambda: None
    most: int = 0
    _open: int = 0

    async def request(self, request: Request) -> Response:
        raise AssertionError(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        self.requests.append(request)
        seconds, end = self.scripts.pop(0)
        self._open += 1
        self.most = max(self.most, self._open)
        try:
            yield StreamResponse(STATUSES.get(end, 200), {}, self._lines(seconds, end))
        finally:
            self._open -= 1

    async def _lines(self, seconds: list[int], end: str) -> AsyncIterator[bytes]:
        for second in seconds:
            yield f"2026-01-01T00:00:{second:02}.5Z line {second}\n".encode()
        await asyncio.sleep(0.01)
        self.before_end()
        if end == "breaks":
            raise ConnectionFailedError("reset")
        if end == "stays":
            await asyncio.Event().wait()
        if end == "lost":
            yield b"unable to retrieve container logs for containerd://0a1b"

    async def close(self) -> None: ...


class Store:
    """The pods that an informer would contain."""

    def __init__(self, *pods: JSONObject) -> None:
        self.pods = {meta.key(pod): pod for pod in pods}

    def list(self) -> list[JSONObject]:
        return [*self.pods.values()]

    def get(self, key: ObjectKey) -> JSONObject | None:
        return self.pods.get(key)


@dataclass
class Informers:
    """Replaces the informers of one workload, and tasks that wait for changes."""

    store: Store
    object: JSONObject | None = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pods(self) -> "Informers":
        return self

    async def wait_for(self, check: Callable[[], Any]) -> Any:
        while (answer := check()) is None:
            await self.changed.wait()
            self.changed.clear()
        return answer

    def put(self, pod: JSONObject) -> None:
        self.store.pods[meta.key(pod)] = pod
        self.changed.set()

    def end(self) -> None:
        self.object = None
        self.store.pods.clear()
        self.changed.set()


def pod(name: str = "web-0", restarts: int = 0, *, running: bool = True) -> JSONObject:
    state: JSONObject = {"running": {}} if running else {"terminated": {}}
    own = {"namespace": "d", "labels": {labels.NAME: "web"}}
    return objects.pod(
        name, metadata=own, containerStatuses=[{"name": "main", "restartCount": restarts, "state": state}]
    )


async def followed(
    kubelet: Kubelet, informers: Informers, *, options: PodLogOptions | None = None, streams: Streams | None = None
) -> list[str]:
    """Follow the logs until the workload is deleted. Return the lines."""
    seen: list[str] = []
    follower = LogFollower(
        Client(kubelet), lambda _: True, options or PodLogOptions(), lambda _, line: seen.append(line.decode()), streams
    )
    await follower.run(informers, informers)  # type: ignore[arg-type]  # what a follower needs of both
    return seen


async def test_broken_stream_continues_without_repeated_lines() -> None:
    informers = Informers(Store(pod()))
    kubelet = Kubelet([([1, 2], "breaks"), ([2, 3], "breaks"), ([1, 2, 3, 4], "ends")])

    def end() -> None:
        if not kubelet.scripts:
            informers.end()

    kubelet.before_end = end
    assert await followed(kubelet, informers, options=PodLogOptions(tail=5)) == [
        "line 1",
        "line 2",
        "line 3",
        "line 4",
    ]
    queries = [dict(request.query) for request in kubelet.requests]
    assert [query.get("sinceTime") for query in queries] == [
        None,
        "2026-01-01T00:00:02.5Z",
        "2026-01-01T00:00:03.5Z",
    ]
    assert [query.get("tailLines") for query in queries] == ["5", None, None]


async def test_rest_of_a_run_that_ended_during_a_break_is_read() -> None:
    informers = Informers(Store(pod()))
    kubelet = Kubelet([([1], "breaks"), ([1, 2], "ends"), ([3], "ends")])

    def before_end() -> None:
        if len(kubelet.scripts) == 2:
            informers.put(pod(restarts=1, running=False))
        if not kubelet.scripts:
            informers.end()

    kubelet.before_end = before_end
    assert await followed(kubelet, informers) == ["line 1", "line 2", "line 3"]
    assert [dict(one.query).get("previous") for one in kubelet.requests] == [None, "true", None]


async def test_stream_that_ends_before_its_container_is_opened_again() -> None:
    informers = Informers(Store(pod()))
    kubelet = Kubelet([([1], "ends"), ([1, 2], "ends")])

    def before_end() -> None:
        if not kubelet.scripts:
            informers.put(pod(running=False))
            asyncio.get_running_loop().call_later(1, informers.end)

    kubelet.before_end = before_end
    assert await followed(kubelet, informers) == ["line 1", "line 2"]


async def test_temporarily_unreadable_log_is_read_again() -> None:
    """An example is the log of a pod that crashed immediately and is being recreated."""
    informers = Informers(Store(pod()))
    kubelet = Kubelet([([], "not now"), ([], "not now"), ([1], "ends")])
    kubelet.before_end = lambda: None if kubelet.scripts else informers.end()
    assert await followed(kubelet, informers) == ["line 1"]


async def test_forbidden_log_is_an_error() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await followed(Kubelet([([], "forbidden")]), Informers(Store(pod())))
    assert raised.group_contains(LogError, match="web-0: ")


@pytest.mark.parametrize("most", [1, 2, None])
async def test_number_of_open_streams_is_limited(most: int | None) -> None:
    informers = Informers(Store(*(pod(f"web-{index}", running=False) for index in range(4))))
    kubelet = Kubelet([([1], "ends")] * 4)
    told: list[str] = []

    def before_end() -> None:
        asyncio.get_running_loop().call_later(0.01, informers.changed.set)
        if not kubelet.scripts:
            asyncio.get_running_loop().call_later(1, informers.end)

    kubelet.before_end = before_end
    assert len(await followed(kubelet, informers, streams=Streams(most, lambda: told.append("full")))) == 4
    assert kubelet.most == (most or 4)
    assert told == ([] if most is None else ["full"])


@pytest.mark.parametrize("later", [0.02, 0.5], ids=["before the first pause is over", "in a later pause"])
async def test_log_is_finished_when_its_run_is_known_to_have_ended(later: float) -> None:
    """The wait for the last lines (`drained`) stops as soon as the pod status reports the termination."""
    loop = asyncio.get_running_loop()
    informers = Informers(Store(pod()))
    kubelet = Kubelet([([1], "ends")] * 9)
    follower = LogFollower(Client(kubelet), lambda _: True, PodLogOptions(), lambda *_: None)
    following = asyncio.create_task(follower.run(informers, informers))  # type: ignore[arg-type]  # as above
    await asyncio.sleep(later)
    informers.put(pod(running=False))
    changed = loop.time()
    await follower.wait_until_drained(60)
    assert loop.time() - changed < 0.001
    informers.end()
    await following


async def test_last_lines_are_awaited_for_ended_runs_only() -> None:
    loop = asyncio.get_running_loop()
    informers = Informers(Store(pod("web-0"), pod("web-1")))
    kubelet = Kubelet([([1], "stays")] * 2)
    follower = LogFollower(Client(kubelet), lambda _: True, PodLogOptions(), lambda *_: None)
    following = asyncio.create_task(follower.run(informers, informers))  # type: ignore[arg-type]  # as above
    await asyncio.sleep(0.1)
    begun = loop.time()
    await follower.wait_until_drained(60)
    assert loop.time() == begun
    informers.put(pod("web-1", running=False))
    await follower.wait_until_drained(60)
    assert loop.time() >= begun + 60
    following.cancel()


async def ended(kubelet: Kubelet, informers: Informers, most: int | None = None) -> tuple[int, list[str]]:
    """Follow a terminated workload. Return the number of lines, and the lost logs."""
    seen: list[bytes] = []
    lost: list[str] = []
    streams = Streams(most, on_lost=lambda _, error: lost.append(str(error)))
    follower = LogFollower(Client(kubelet), lambda _: True, PodLogOptions(), lambda _, line: seen.append(line), streams)
    await follower.run(informers, informers, lambda _: True)  # type: ignore[arg-type]  # as above
    return len(seen), lost


async def test_all_logs_of_a_set_that_is_over_are_read_by_one_stream() -> None:
    informers = Informers(Store(*(pod(f"web-{index}", running=False) for index in range(4))))
    kubelet = Kubelet([([1], "ends")] * 4)
    assert await ended(kubelet, informers, 1) == (4, [])
    assert kubelet.most == 1


async def test_a_removed_log_is_reported_once_when_its_run_ended() -> None:
    kubelet = Kubelet([([], "lost")])
    assert await ended(kubelet, Informers(Store(pod(running=False)))) == (
        0,
        ["web-0 (Pending): its node has deleted its log"],
    )


@pytest.mark.parametrize("is_read", [False, True], ids=["before it is read", "after it is read"])
async def test_removed_log_of_a_running_container_is_read_once(*, is_read: bool) -> None:
    """A node briefly renames the log when its size exceeds the limit."""
    informers = Informers(Store(pod()))
    kubelet = Kubelet([([1], "ends"), ([], "lost")] if is_read else [([], "lost"), ([1], "ends")])
    kubelet.before_end = lambda: None if kubelet.scripts else informers.put(pod(running=False))
    assert await ended(kubelet, informers) == (1, [])


async def test_a_removed_log_is_an_error_without_a_receiver() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await followed(Kubelet([([], "lost")]), Informers(Store(pod(running=False))))
    assert raised.group_contains(LostLogError, match="web-0")
