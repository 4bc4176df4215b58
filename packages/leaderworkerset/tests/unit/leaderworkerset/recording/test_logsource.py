"""Tests that logs are read concurrently and with a time limit, but after a deletion only for retained pods."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from testkit import objects, virtualtime

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.recording import logrequestlimits, logsource
from leaderworkerset.recording.logsource import DEADLINE, LOG_BYTES, ApiLogs, max_log_size


def pod(
    name: str = "web-0", *, now: str = "b", before: str = "a", namespace: str = "default", node: str = ""
) -> JSONObject:
    """Return a pod whose container has a current run and a previous run."""
    ended = {"terminated": {"containerID": before, "exitCode": 1}} if before else {}
    status = {"name": "app", "containerID": now, "state": {"running": {}}, "lastState": ended}
    own = {"namespace": namespace, "uid": f"uid-{name}"}
    return objects.pod(name, node=node, metadata=own, containerStatuses=[status])


@dataclass
class Kubelet:
    """Responds to log requests, depending on `previous`. None means 404, and a number is a delay in seconds."""

    present: bytes | float | None = b"now\n"
    previous: bytes | float | None = b"before\n"
    asked: list[dict[str, str]] = field(default_factory=list)
    most: int = 0
    """The maximum number of concurrent log requests."""
    slow: str = ""
    """The namespace whose log requests receive no response."""
    _open: int = 0

    async def request(self, request: Request) -> Response:
        """Reject the request, because only logs are read in these tests."""
        raise AssertionError(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Respond to a request."""
        self.asked.append(dict(request.query))
        answer = self.previous if ("previous", "true") in request.query else self.present
        if self.slow and f"/namespaces/{self.slow}/" in request.path:
            answer = 3600.0
        self._open += 1
        self.most = max(self.most, self._open)
        try:
            if answer is None:
                yield StreamResponse(
                    404, {}, _chunks(b'{"kind":"Status","message":"pods not found","reason":"NotFound"}', 0)
                )
            elif isinstance(answer, bytes):
                yield StreamResponse(200, {}, _chunks(answer, 0))
            else:
                yield StreamResponse(200, {}, _chunks(b"the beginning", answer))
        finally:
            self._open -= 1

    async def close(self) -> None:
        """Do nothing."""


async def _chunks(text: bytes, seconds: float) -> AsyncIterator[bytes]:
    for start in range(0, len(text), 4096):
        yield text[start : start + 4096]
    await asyncio.sleep(seconds)


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario in virtual time."""
    virtualtime.run(scenario())


def test_last_two_runs_are_read_with_bounds_and_cached() -> None:
    async def scenario() -> None:
        kubelet = Kubelet()
        logs = ApiLogs(Client(kubelet))
        logs.prefetch([pod()])
        assert await logs.read([pod()]) == ({("uid-web-0", "app"): ["before\n", "now\n"]}, [])
        bounds = {"container": "app", "tailLines": "200", "limitBytes": str(logsource.READ_BYTES)}
        assert sorted(kubelet.asked, key=len) == [bounds, bounds | {"previous": "true"}]
        kubelet.present = kubelet.previous = None
        logs.prefetch([pod()])
        logs.forget_pod(pod())
        assert await logs.read([pod()]) == ({("uid-web-0", "app"): ["before\n", "now\n"]}, [])

    play(scenario)


def test_more_lines_replace_fewer_and_a_newer_run_an_older_one() -> None:
    async def scenario() -> None:
        kubelet = Kubelet()
        logs = ApiLogs(Client(kubelet))
        for now, before, present in (("a", "", b"1\n"), ("a", "", b"1\n2\n"), ("b", "a", b"3\n"), ("c", "b", b"4\n")):
            kubelet.present, kubelet.previous = present, b""
            logs.prefetch([pod(now=now, before=before)])
            await logs.read([pod()])
        found, _ = await logs.read([pod()])
        assert found == {("uid-web-0", "app"): ["3\n", "4\n"]}

    play(scenario)


def test_unresponsive_kubelet_is_abandoned_at_the_deadline() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        logs = ApiLogs(Client(Kubelet(present=3600.0, previous=None)))
        begun = loop.time()
        logs.prefetch([pod()])
        logs.prefetch([pod()])  # this log is already being read
        found, notes = await logs.read([pod()])
        assert loop.time() - begun == DEADLINE
        assert (found, notes) == ({("uid-web-0", "app"): ["the beginning"]}, [])
        silent = ApiLogs(Client(Kubelet(present=None, previous=None)))
        silent.prefetch([pod()])
        found, notes = await silent.read([pod()])
        assert notes == ["failed to read the logs of pod web-0: pods not found"]

    play(scenario)


def test_deleted_pod_causes_no_request() -> None:
    async def scenario() -> None:
        kubelet = Kubelet(present=1.0, previous=1.0)
        logs = ApiLogs(Client(kubelet))
        pods = [pod(f"web-{number}") for number in range(20)]
        logs.prefetch(pods)
        await asyncio.sleep(0.5)
        asked = len(kubelet.asked)
        assert asked == kubelet.most == logrequestlimits.OF_A_NODE
        for one in pods:
            logs.forget_pod(one)
        found, _ = await logs.read(pods)
        assert len(kubelet.asked) == asked
        assert ["the beginning"] in [[*runs] for runs in found.values()] or found

    play(scenario)


@pytest.mark.parametrize("nodes", [1, 64])
def test_slow_logs_do_not_delay_logs_of_other_namespaces(nodes: int) -> None:
    async def scenario() -> None:
        loop, logs = asyncio.get_running_loop(), ApiLogs(Client(Kubelet(slow="noisy")))
        noisy = [pod(f"web-{number}", namespace="noisy", node=f"node-{number % nodes}") for number in range(64)]
        logs.prefetch(noisy)
        await asyncio.sleep(0.1)
        begun, own = loop.time(), pod("own", node="node-of-its-own")
        logs.prefetch([own])
        assert await logs.read([own]) == ({("uid-own", "app"): ["before\n", "now\n"]}, [])
        assert loop.time() - begun <= DEADLINE
        for one in noisy:
            logs.forget_pod(one)

    play(scenario)


def test_deadline_of_a_log_begins_with_its_request() -> None:
    async def scenario() -> None:
        kubelet = Kubelet(present=1.5, previous=b"")
        logs = ApiLogs(Client(kubelet))
        pods = [pod(f"web-{number}", node=f"node-{number}") for number in range(48)]
        logs.prefetch(pods)
        found, notes = await logs.read(pods)
        assert (len(found), notes) == (48, [])

    play(scenario)


def test_log_that_its_node_removed_is_a_note_and_no_line() -> None:
    async def scenario() -> None:
        gone = b"unable to retrieve container logs for containerd://0a1b"
        logs = ApiLogs(Client(Kubelet(present=gone, previous=gone)))
        logs.prefetch([pod()])
        found, notes = await logs.read([pod()])
        assert (found["uid-web-0", "app"], notes) == ([], [f"failed to read the logs of pod web-0: {gone.decode()}"])

    play(scenario)


def test_endless_output_takes_bounded_memory(monkeypatch: Any) -> None:
    async def scenario() -> None:
        kubelet = Kubelet(present=b"x" * 10_000_000 + b"\nthe end\n", previous=b"")
        logs = ApiLogs(Client(kubelet))
        logs.prefetch([pod()])
        found, _ = await logs.read([pod()])
        (run,) = found["uid-web-0", "app"]
        assert len(run) == LOG_BYTES
        assert run.endswith("the end\n")
        monkeypatch.setattr(logsource, "REMEMBERED_BYTES", 3 * LOG_BYTES)
        pods = [pod(f"web-{number}") for number in range(5)]
        for one in pods:
            logs.prefetch([one])
            await logs.read([one])
        found, _ = await logs.read(pods)
        assert [uid for uid, _ in found] == ["uid-web-2", "uid-web-3", "uid-web-4"]

    play(scenario)


def test_all_logs_of_an_episode_share_its_bytes() -> None:
    assert max_log_size([pod()]) == LOG_BYTES
    assert max_log_size([pod(str(number)) for number in range(64)]) == logsource.EPISODE_BYTES // 64
    assert max_log_size([]) == LOG_BYTES
