"""Tests that a controller reconciles each key to its plan despite failures."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import structlog
from testkit import objects
from testkit.fakes import SmallServer, failure
from testkit.virtualtime import VirtualClock, run

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.controller.controller import Controller, ControllerOptions, Watch, ignore_failure
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.manager import Manager
from kuberuntime.controller.writes import ObjectWrite, Write
from kuberuntime.errors import ConnectionFailedError, KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Actions, Apply, Create, Event, Plan

pytestmark = pytest.mark.virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


class NoEvents:
    """A recorder for plans without events."""

    def record(self, event: Event) -> None:
        raise AssertionError(event)


@dataclass
class Doubler:
    """Creates a pod `x-twin` for each pod `x`. Counts reconciles, and fails if two of them run for one key."""

    informer: Informer
    looks: Counter[str] = field(default_factory=Counter)
    failures: list[Exception] = field(default_factory=list)
    active: set[ObjectKey] = field(default_factory=set)
    requeue_after: float | None = None
    seconds: float = 0.0

    def keys(self, change: Change) -> list[ObjectKey]:
        return [ObjectKey("default", meta.name(change.object).removesuffix("-twin"))]

    async def plan(self, key: ObjectKey) -> Plan:
        assert key not in self.active
        self.active.add(key)
        try:
            self.looks[key.name] += 1
            await asyncio.sleep(self.seconds)
            if self.failures and key.name == "a":
                raise self.failures.pop(0)
            return self.decide(key)
        finally:
            self.active.discard(key)

    def decide(self, key: ObjectKey) -> Plan:
        twin = f"{key.name}-twin"
        if self.informer.store.get(key) is None or self.informer.store.get(ObjectKey("default", twin)):
            return Plan(requeue_after=self.requeue_after)
        return Plan((Create(resource=PODS, object=objects.pod(twin)),), requeue_after=self.requeue_after)


@dataclass
class Rig:
    """A server with an informer, a doubler and the controller that uses them."""

    server: SmallServer
    doubler: Doubler
    controller: Controller
    written: list[Write]


@asynccontextmanager
async def rig(
    *,
    workers: int = 2,
    quiet: bool = False,
    rest: float = 0.0,
    failed: Callable[[ObjectKey], Actions] = ignore_failure,
) -> AsyncIterator[Rig]:
    server = SmallServer()
    informer = Informer(Client(server), PODS)
    doubler = Doubler(informer)
    written: list[Write] = []
    controller = Controller(
        "doubler",
        watches=[Watch(informer, doubler.keys)],
        plan=doubler.plan,
        executor=Executor(Client(server), NoEvents(), VirtualClock()),
        options=ControllerOptions(
            workers=workers,
            is_quiet=quiet,
            min_interval=rest,
            on_written=lambda _, writes: written.extend(writes),
            on_failed=failed,
        ),
    )
    manager = Manager(informers=[informer], runnables=[controller])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.wait_synced()
        yield Rig(server, doubler, controller, written)
        task.cancel()


def posts(server: SmallServer) -> int:
    return sum(request.method == "POST" for request in server.requests)


async def test_every_object_receives_its_twin_by_one_create() -> None:
    async with rig() as r:
        for name in "abcde":
            r.server.put(name)
        await asyncio.sleep(1)
        assert r.server.objects.keys() == {name + suffix for name in "abcde" for suffix in ("", "-twin")}
        assert posts(r.server) == 5


async def test_writes_of_a_plan_are_reported() -> None:
    async with rig() as r:
        r.server.put("a")
        await asyncio.sleep(1)
        (write,) = r.written
        assert isinstance(write, ObjectWrite)
        assert write.key.name == "a-twin"
        assert write.version


@pytest.mark.parametrize(("quiet", "level"), [(False, "info"), (True, "debug")], ids=["usual", "quiet"])
def test_performed_plan_is_logged(quiet: bool, level: str) -> None:
    async def scenario() -> None:
        async with rig(quiet=quiet) as r:
            r.server.put("a")
            await asyncio.sleep(1)

    with structlog.testing.capture_logs() as logs:
        run(scenario())

    (line,) = [one for one in logs if one["event"] == "reconciled" and one["actions"]]
    assert (line["log_level"], line["key"]) == (level, "default/a")
    assert line["writes"] == ["wrote pods/a-twin"]


async def test_changes_after_an_empty_plan_cause_one_reconciliation() -> None:
    async with rig(rest=0.05) as r:
        r.server.put("a")
        await asyncio.sleep(1)
        before = r.doubler.looks["a"]
        for number in range(4):
            r.server.put("a", spec={"priority": number})
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        assert r.doubler.looks["a"] == before + 2  # the first change, and the others after the rest


async def test_lagging_cache_does_not_cause_a_second_create() -> None:
    async with rig() as r:
        r.server.put("a")
        await asyncio.sleep(0.0005)  # the reconciliation has begun, and its create request is pending
        r.server.mute()
        await asyncio.sleep(0.1)
        for _ in range(20):
            r.controller.enqueue(ObjectKey("default", "a"))
            await asyncio.sleep(0.1)
        assert r.doubler.looks["a"] == 1
        await asyncio.sleep(30)
        assert posts(r.server) == 1
        assert r.doubler.looks["a"] > 1


async def test_key_is_reconciled_by_one_worker_at_a_time() -> None:
    async with rig(workers=8) as r:
        r.doubler.seconds = 0.3
        for _ in range(20):
            r.server.put("a")
            r.server.put("b")
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        assert set(r.server.objects) == {"a", "b", "a-twin", "b-twin"}


async def test_failing_key_is_retried_and_does_not_block_others() -> None:
    async with rig(workers=1) as r:
        r.doubler.failures = [RuntimeError("a bug"), KubeError("no connection"), ZeroDivisionError("another bug")]
        r.server.put("a")
        r.server.put("b")
        await asyncio.sleep(1)
        assert r.server.objects.keys() == {"a", "b", "a-twin", "b-twin"}


@pytest.mark.parametrize(
    ("error", "is_reported"),
    [(RuntimeError("a bug"), True), (KubeError("forbidden"), True), (ConnectionFailedError("an outage"), False)],
    ids=["a bug", "an error of the server", "an outage"],
)
async def test_failed_decision_is_reported(error: Exception, is_reported: bool) -> None:
    """The object must not retain an earlier status. During an outage, the error cannot be reported either."""
    async with rig(failed=lambda key: (Create(resource=PODS, object=objects.pod(f"{key.name}-failed")),)) as r:
        r.doubler.failures = [error]
        r.server.put("a")
        await asyncio.sleep(1)
        assert r.doubler.looks["a"] >= 2
        assert ("a-failed" in r.server.objects) == is_reported


async def test_repeatedly_failing_key_backs_off() -> None:
    async with rig() as r:
        r.doubler.failures = [KubeError("no")] * 1000
        r.server.put("a")
        await asyncio.sleep(0.005 * 2**10)
        assert 8 <= r.doubler.looks["a"] <= 12


async def test_success_resets_the_back_off_of_a_key() -> None:
    async with rig() as r:
        for _ in range(3):
            r.doubler.failures = [KubeError("no")] * 5
            r.server.put("a")
            started, looks = now(), r.doubler.looks["a"]
            await asyncio.sleep(0.3)
            assert r.doubler.looks["a"] - looks >= 6
            assert now() - started < 0.31


async def test_plan_can_request_a_later_reconciliation() -> None:
    async with rig() as r:
        r.doubler.requeue_after = 5
        r.server.put("a")
        await asyncio.sleep(1)
        looks = r.doubler.looks["a"]
        await asyncio.sleep(50)
        assert r.doubler.looks["a"] - looks in {10, 11}


async def test_idle_controller_neither_writes_nor_reconciles() -> None:
    async with rig() as r:
        r.server.put("a")
        await asyncio.sleep(1)
        looks, writes = r.doubler.looks.total(), posts(r.server)
        await asyncio.sleep(3600)
        assert (r.doubler.looks.total(), posts(r.server)) == (looks, writes)


async def test_rejected_write_is_retried_until_it_is_accepted() -> None:
    def refuse(request: Request) -> Response | None:
        return failure(403, "Forbidden", "quota") if request.method == "POST" and now() < 3 else None

    async with rig() as r:
        r.server.refuse = refuse
        r.server.put("a")
        await asyncio.sleep(10)
        assert "a-twin" in r.server.objects


def test_no_op_apply_does_not_hold_its_key() -> None:
    """Unlike after a create request, the server returns a version that is already in the cache."""

    async def scenario() -> None:
        server = SmallServer()
        server.put("a", **objects.pod("a"))
        informer = Informer(Client(server), PODS)
        looks = 0

        async def plan(key: ObjectKey) -> Plan:
            nonlocal looks
            looks += 1
            return Plan((Apply(resource=PODS, object=objects.pod(key.name), manager="m"),), requeue_after=1)

        controller = Controller(
            "applier",
            watches=[Watch(informer, lambda change: [meta.key(change.object)])],
            plan=plan,
            executor=Executor(Client(server), NoEvents(), VirtualClock()),
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(Manager(informers=[informer], runnables=[controller]).run())
            await asyncio.sleep(10)
            task.cancel()
        assert looks == 10

    run(scenario())


async def test_failing_mapping_does_not_stop_the_informer() -> None:
    server = SmallServer()
    informer = Informer(Client(server), PODS)
    seen: list[str] = []

    def keys(change: Change) -> list[ObjectKey]:
        return [ObjectKey("default", change.object["spec"]["owner"])]

    async def plan(key: ObjectKey) -> Plan:
        seen.append(key.name)
        return Plan()

    executor = Executor(Client(server), NoEvents(), VirtualClock())
    controller = Controller("fragile", watches=[Watch(informer, keys)], plan=plan, executor=executor)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(Manager(informers=[informer], runnables=[controller]).run())
        await asyncio.sleep(1)
        server.put("strange")
        server.put("a", spec={"owner": "x"})
        await asyncio.sleep(1)
        task.cancel()
    assert seen == ["x"]
