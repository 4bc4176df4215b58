"""Tests the writes and results of concurrent sequences of actions, and the effect of a failure."""

import asyncio

import msgspec
import pytest
import structlog
from testkit.transports import RequestTransport

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.clock import SystemClock
from kuberuntime.controller.executionerrors import ExecutionError
from kuberuntime.controller.executor import AT_ONCE, Executor, NoEvents, slow_start
from kuberuntime.controller.writes import ObjectWrite, Write
from kuberuntime.objects.meta import JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import CONFIG_MAPS
from kuberuntime.plan import Actions, Concurrently, Create, Plan, PutStatus, guarded_patch


class Echo(RequestTransport):
    """A server that returns written objects with version 7. It rejects names with the prefixes `bad` and `stale`."""

    def __init__(self) -> None:
        self.sent: list[JSONObject] = []

    async def request(self, request: Request) -> Response:
        obj: JSONObject = msgspec.json.decode(request.body)
        self.sent.append(obj)
        name = obj["metadata"].get("name", request.path.rpartition("/")[2])
        if name.startswith(("bad", "stale")):
            code, reason = (409, "Conflict") if name == "stale" else (403, "Forbidden")
            status = {"kind": "Status", "code": code, "reason": reason, "message": f"{name} is refused"}
            return Response(code, {}, msgspec.json.encode(status))
        head = {"name": name, "namespace": "default", "resourceVersion": "7"}
        return Response(200, {}, msgspec.json.encode(obj | {"metadata": head}))


def create(name: str) -> Create:
    """Return the action that creates a ConfigMap."""
    return Create(resource=CONFIG_MAPS, object={"metadata": {"name": name, "namespace": "default"}})


def written(name: str) -> ObjectWrite:
    """Return the record of a write."""
    return ObjectWrite(CONFIG_MAPS, ObjectKey("default", name), ResourceVersion("7"))


async def perform(sequences: list[Actions], *, slow: bool = True) -> tuple[set[Write], int, str]:
    """Perform sequences concurrently. Return the writes, the number of requests, and the failure."""
    server = Echo()
    executor = Executor(Client(server), NoEvents(), SystemClock())
    plan = Plan((Concurrently(sequences=tuple(sequences), slow_start=slow),))
    try:
        return set(await executor.execute(plan)), len(server.sent), ""
    except ExecutionError as error:
        return set(error.writes), len(server.sent), str(error)


def test_all_sequences_are_performed_and_reported() -> None:
    sequences: list[Actions] = [(create(f"a{number}"), create(f"b{number}")) for number in range(5)]
    names = {f"{letter}{number}" for letter in "ab" for number in range(5)}
    assert asyncio.run(perform(sequences)) == (set(map(written, names)), 10, "")


@pytest.mark.parametrize("slow", [True, False])
def test_plan_with_many_writes_limits_its_concurrency(slow: bool) -> None:
    """With more concurrent writes, writes of other users would wait in API servers and webhooks."""
    under_way: list[int] = [0]

    class Slow(Echo):
        async def request(self, request: Request) -> Response:
            under_way.append(under_way[-1] + 1)
            await asyncio.sleep(0)
            under_way.append(under_way[-1] - 1)
            return await super().request(request)

    plan = Plan((Concurrently(sequences=tuple((create(f"a{number}"),) for number in range(300)), slow_start=slow),))
    executor = Executor(Client(Slow()), NoEvents(), SystemClock())
    assert len(asyncio.run(executor.execute(plan))) == 300
    assert max(under_way) == AT_ONCE


def test_failure_ends_its_sequence_and_later_batches() -> None:
    sequences: list[Actions] = [(create("a"),), (create("bad"), create("never")), (create("b"),), (create("late"),)]
    writes, requests, failure = asyncio.run(perform(sequences))
    assert writes == {written("a"), written("b")}
    assert requests == 3
    assert failure.endswith("bad is refused")


def test_all_sequences_start_without_slow_start() -> None:
    sequences: list[Actions] = [(create("bad"), create("never")), (create("a"),), (create("b"),)]
    writes, requests, failure = asyncio.run(perform(sequences, slow=False))
    assert writes == {written("a"), written("b")}
    assert requests == 3
    assert failure.endswith("bad is refused")


def test_failures_that_are_not_raised_are_logged() -> None:
    sequences: list[Actions] = [(create("bad-1"),), (create("a"),), (create("bad-2"),), (create("bad-3"),)]
    with structlog.testing.capture_logs() as lines:
        failure = asyncio.run(perform(sequences, slow=False))[2]
    assert failure.endswith("bad-1 is refused")
    assert [(line["log_level"], line["count"]) for line in lines if "count" in line] == [("warning", 2)]
    assert [error.rpartition(": ")[2] for error in lines[-1]["errors"]] == ["bad-2 is refused", "bad-3 is refused"]


def test_conflict_does_not_hide_a_different_failure() -> None:
    seen = {"metadata": {"name": "stale", "namespace": "default"}}
    stale = PutStatus(resource=CONFIG_MAPS, object=seen, resource_version=ResourceVersion("1"))
    failure = asyncio.run(perform([(stale,), (create("bad"),)], slow=False))[2]
    assert failure.endswith("bad is refused")


def test_patch_carries_the_observed_version_and_is_reported() -> None:
    seen = {"metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "3"}}
    patch = guarded_patch(CONFIG_MAPS, seen, {"metadata": {"labels": {"x": "y"}}, "data": {"k": "v"}})
    assert patch.patch == {
        "metadata": {"uid": "u", "resourceVersion": "3", "labels": {"x": "y"}},
        "data": {"k": "v"},
    }
    assert asyncio.run(perform([(patch,)])) == ({written("a")}, 1, "")


@pytest.mark.parametrize(("number", "batches"), [(0, []), (1, [1]), (3, [1, 2]), (10, [1, 2, 4, 3])])
def test_slow_start_doubles_the_batches(number: int, batches: list[int]) -> None:
    assert [len(batch) for batch in slow_start(range(number))] == batches
