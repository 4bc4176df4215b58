"""Tests the rate limit of the client."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.fakes import ScriptedTransport, respond
from testkit.virtualtime import VirtualClock

from kuberuntime.client.ratelimit import LimitedTransport, TokenBucket
from kuberuntime.client.transport import Request

pytestmark = pytest.mark.virtual_time


async def test_burst_passes_and_later_requests_keep_the_rate() -> None:
    inner = ScriptedTransport(*[respond(200, {})] * 6)
    limited = LimitedTransport(inner, TokenBucket(rate=2, burst=3), VirtualClock())
    loop = asyncio.get_running_loop()
    times = []

    async def send() -> None:
        await limited.request(Request("GET", "/"))
        times.append(round(loop.time(), 3))

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(send())
    async with limited.stream(Request("GET", "/", (("watch", "true"),))):
        times.append(round(loop.time(), 3))
    await asyncio.sleep(10)
    await send()
    await limited.close()
    assert inner.closed
    assert times == [0.0, 0.0, 0.0, 0.5, 1.0, 11.0]


async def test_busy_namespace_does_not_delay_other_namespaces() -> None:
    limited = LimitedTransport(
        ScriptedTransport(*[respond(200, {})] * 1003), TokenBucket(rate=10, burst=1), VirtualClock()
    )
    sent: list[str] = []

    async def send(namespace: str) -> None:
        await limited.request(Request("PATCH", f"/api/v1/namespaces/{namespace}/pods/p"))
        sent.append(namespace)

    async with asyncio.TaskGroup() as group:
        busy = [group.create_task(send("busy")) for _ in range(1000)]
        await asyncio.sleep(0.15)
        for one in busy[2:5]:
            one.cancel()
        for namespace in ("calm", "calm", "third"):
            group.create_task(send(namespace))
        await asyncio.sleep(0.6)
        assert sent == ["busy", "busy", "calm", "third", "calm"]
        await asyncio.sleep(1000)
        assert len(sent) == 1000


@given(
    rate=st.floats(0.5, 100),
    burst=st.integers(1, 20),
    gaps=st.lists(st.floats(0, 5), min_size=1, max_size=50),
)
def test_burst_and_rate_hold_in_every_interval(rate: float, burst: int, gaps: list[float]) -> None:
    bucket, now, sent = TokenBucket(rate, burst), 0.0, []
    for gap in gaps:
        now += gap
        sent.append(now + bucket.reserve(now))
    assert sent == sorted(sent)
    for index, first in enumerate(sent):
        for count, last in enumerate(sent[index:], start=1):
            assert count <= burst + rate * (last - first) + 1 + 1e-6
