"""Runs a complete cluster in one thread and in virtual time.

Each side of a seam runs the code of production: the API server on a store in memory, the controllers and the scheduler
of `localkube`, its kubelet on modelled processes, and the product's webhooks and managers. Every actor has a transport
with its own faults and its own randomness, so that a seed decides everything.

`simulate(scenario, settings)` runs a scenario; if it fails, the error has the seed and the trace of all writes.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import structlog
from testkit.virtualtime import SingleThreadLoop, SkewedClock, VirtualClock, run
from tests.scenario import Scenario
from tests.simulation import product
from tests.simulation.checks.torn import Torn
from tests.simulation.faults import FaultyTransport, Schedule
from tests.simulation.states import OBSERVED, comparable
from tests.simulation.trace import Trace

from kuberuntime import randomness, timeouts
from kuberuntime.client.client import Client
from kuberuntime.controller.eventrecorder import EventRecorder
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, Resource
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.kinds.registry import Registry
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import Change, Store
from localkube.controllers.controllermanager import ControllerSettings
from localkube.controllers.controllermanager import run_controllers as run_localkube
from localkube.controllers.nodes.nodes import NodeSettings, node_names
from localkube.kubelet.kubelet import Kubelet
from localkube.kubelet.node import podevents
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import Exit
from localkube.kubelet.processes.simulatedrunner import Script, SimulatedRunner, run_forever

NAMESPACE: Final = "default"

LIMIT: Final = 1800.0
"""The virtual time in seconds within which every expected state must be reached."""

QUIET: Final = 45.0
"""The virtual time in seconds without a write after which a cluster is stable.

It is longer than a lease and than most back-off delays.
"""

RESTART: Final = 1.0
"""The virtual time in seconds until a terminated manager is restarted.

`SimulatedCluster.away_until` can delay the restart.
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a simulation.

    There are as many managers as `managers` has schedules; one of several is elected.
    """

    seed: int = 1
    managers: Sequence[Schedule] = (Schedule(),)
    others: Schedule = field(default_factory=Schedule)
    """The timing of localkube's controllers and of the kubelet."""
    script: Script = run_forever
    nodes: NodeSettings = field(default_factory=NodeSettings)
    remembered: int = 10_000
    """The number of revisions in the history of the API server."""
    kinds: Registry = MANAGED
    """The kinds that the managers reconcile."""
    installed: Registry | None = None
    """The kinds that are created at the start with their webhooks, or None for all of them."""
    definitions: Sequence[JSONObject] = ()
    """Third-party kinds that the API server serves from the start."""


class SimulatedCluster(Scenario):
    """A running cluster, as it is passed to scenarios."""

    namespace = NAMESPACE

    def __init__(self, settings: Settings, trace: Trace, directory: Path, group: asyncio.TaskGroup) -> None:
        self.settings = settings
        self.trace = trace
        self.clock = VirtualClock()
        self.webhooks = product.webhooks(settings.kinds)
        store = Store(remembered=settings.remembered)
        options = ServerOptions(random=self.random("server"), webhooks=self.webhooks)
        self.server = ApiServer(store, builtin.kinds(), self.clock, options)
        self.client = Client(self._transport("scenario", Schedule()))
        self.runner = SimulatedRunner(settings.script)
        self.managers: dict[str, FaultyTransport] = {}
        self.spent: list[FaultyTransport] = []
        """The transports of terminated managers."""
        self.away_until = 0.0
        """The earliest time at which terminated managers are restarted, in virtual seconds."""
        self.clocks: dict[str, SkewedClock] = {}
        """The clock of each manager's machine."""
        self.torn = Torn(store, self.clock)
        self._directory = directory
        self._group = group
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        store.subscribe(self._note_changes)

    def random(self, actor: str) -> Random:
        """Return an actor's random number generator, which differs for each actor and each seed."""
        return Random(f"{self.settings.seed} {actor}")

    async def start(self) -> None:
        """Start all components, and return when the cluster has its nodes. Managers may still fill their caches."""
        await self.server.start()
        for definition in self.settings.definitions:
            await self.define(definition)
        await product.restore(self.server, self.settings.installed or self.settings.kinds)
        ready, caught_up = asyncio.Event(), asyncio.Event()
        self._spawn("controllers", self._run_controllers(ready))
        self._spawn("kubelet", self._run_kubelet(caught_up))
        for number, schedule in enumerate(self.settings.managers):
            self.start_manager(f"manager-{number}", schedule)
        await ready.wait()
        await caught_up.wait()

    async def stop(self) -> None:
        """Stop all components."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.wait(self._tasks.values())
        await self.runner.stop()
        await self.server.close()

    def start_manager(self, name: str, schedule: Schedule) -> None:
        """Start a manager replica. If it terminates after a write, it is restarted without faults."""
        self._spawn(name, self._supervise(name, schedule))

    async def return_of_managers(self) -> None:
        """Wait until all managers are running."""
        while (left := self.away_until - self.clock.monotonic()) > 0:  # noqa: ASYNC110 - it may grow
            await asyncio.sleep(left)

    async def stop_manager(self, name: str) -> None:
        """Shut down a replica gracefully, so that it can release its lease."""
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait([task])

    async def kill_manager(self, name: str) -> None:
        """Stop a replica as SIGKILL does, without sending its pending writes."""
        self.managers[name].crashed.set()
        await self.stop_manager(name)

    async def define(self, definition: JSONObject) -> None:
        """Add a kind to the API server."""
        await self.client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests")

    async def bring_up(self, lws: JSONObject) -> JSONObject:
        """Create a LeaderWorkerSet, wait until it is stable and available, and return it."""
        await self.create(lws)
        return await self.ready(meta.name(lws))

    async def fail(self, pod: str) -> None:
        """Make the process of a running pod exit with an error. The kubelet restarts the container."""
        uid = meta.uid(await self.get(PODS, pod))
        (container,) = [key for key, process in self.runner.processes.items() if process.spec.sandbox_id == uid]
        self.runner.stop_process(container, Exit(1))

    async def fail_any(self, random: Random) -> None:
        """Make the process of a random pod exit with an error."""
        if processes := sorted(self.runner.processes):
            self.runner.stop_process(random.choice(processes), Exit(1))

    async def until_objects(self, resource: Resource, holds: Callable[[list[JSONObject]], bool]) -> list[JSONObject]:
        """Wait until the objects of a kind satisfy the condition, and return them."""
        found: list[JSONObject] = []
        try:
            async with timeouts.within(LIMIT):
                while True:
                    self._changed[resource.group_resource].clear()
                    found = await self.objects(resource)
                    if holds(found):
                        return found
                    await self._changed[resource.group_resource].wait()
        except TimeoutError:
            last = [(meta.name(one), meta.status(one)) for one in found]
            raise AssertionError(f"{resource.kind}s did not become as wanted in {LIMIT:.0f} s; last: {last}") from None

    def _note_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._changed[change.key.resource].set()

    def observe(self, resource: Resource, seen: Callable[[Change], None]) -> None:
        """Call a function with every change to a kind when the API server commits it."""

        def committed(changes: Sequence[Change]) -> None:
            for change in changes:
                if change.key.resource == resource.group_resource:
                    seen(change)

        self.server.backend.store.subscribe(committed)

    async def at_rest(self) -> None:
        """Wait until there has been no write for `QUIET` seconds."""
        begin = self.clock.monotonic()
        while (left := max(begin, self.trace.settled_at()) + QUIET - self.clock.monotonic()) > 0:
            assert self.clock.monotonic() < begin + LIMIT, f"somebody still writes after {LIMIT:.0f} s"
            await asyncio.sleep(left)

    async def ready(self, name: str = "web") -> JSONObject:
        """Wait until a LeaderWorkerSet is stable and available, and return it."""
        await self.at_rest()
        found = await self.get(LEADERWORKERSETS, name)
        assert meta.is_condition_true(found, "Available"), f"not available: {meta.status(found)}"
        return found

    async def state(self) -> dict[str, JSONObject]:
        """Return all objects of the product, without the fields that differ between runs."""
        found = [obj for resource in OBSERVED for obj in await self.objects(resource)]
        return {f"{obj['kind']} {meta.name(obj)}": comparable(obj) for obj in found}

    def _transport(self, actor: str, schedule: Schedule) -> FaultyTransport:
        inner = InProcessTransport(self.server, actor)
        return FaultyTransport(inner, actor, schedule, self.random(f"{actor}'s faults"), self.trace)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        with randomness.use_random_source(self.random(name)):
            self._tasks[name] = self._group.create_task(work, name=name)

    async def _run_controllers(self, ready: asyncio.Event) -> None:
        client = Client(self._transport("controllers", self.settings.others))
        settings = ControllerSettings(volumes=self._directory / "claims", nodes=self.settings.nodes)
        await run_localkube(client, settings, clock=self.clock, ready=ready)

    async def _run_kubelet(self, caught_up: asyncio.Event) -> None:
        client = Client(self._transport("kubelet", self.settings.others))
        settings = KubeletSettings(
            node_names=frozenset(node_names(self.settings.nodes)),
            capabilities=await self.runner.start(),
            state_directory=self._directory,
            host_environment={"PATH": "/usr/bin:/bin"},
        )
        events = EventRecorder(client, podevents.REPORTER, "simulated", self.clock)
        kubelet = Kubelet(client, self.runner, settings, self.clock, events)
        self.server.attach_node(kubelet)
        async with asyncio.TaskGroup() as group:
            group.create_task(events.run())
            group.create_task(kubelet.run(caught_up))

    async def _supervise(self, name: str, schedule: Schedule) -> None:
        elected = len(self.settings.managers) > 1
        clock = self.clocks.setdefault(name, SkewedClock(self.clock))
        while True:
            transport = self.managers[name] = self._transport(name, schedule)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(
                    product.run_manager(
                        transport, clock, name, self.torn.manager_begins, elected=elected, kinds=self.settings.kinds
                    )
                )
                crash = group.create_task(transport.crashed.wait())
                await asyncio.wait((running, crash), return_when=asyncio.FIRST_COMPLETED)
                transport.interrupted()
                running.cancel()
                crash.cancel()
            await transport.close()
            self.spent.append(transport)
            schedule = Schedule(latency=schedule.latency) if transport.writes else transport.schedule
            await asyncio.sleep(RESTART)
            await self.return_of_managers()


@asynccontextmanager
async def running(
    settings: Settings, trace: Trace, directory: Path, kind: type[SimulatedCluster] = SimulatedCluster
) -> AsyncIterator[Any]:
    """Run a cluster for the duration of the `with` block."""
    async with asyncio.TaskGroup() as group:
        world = kind(settings, trace, directory, group)
        await world.start()
        try:
            yield world
        finally:
            await world.stop()


Running: TypeAlias = Callable[[Settings, Trace, Path], AbstractAsyncContextManager[Any]]
"""Runs a cluster, and passes it to scenarios as their type of world."""


@dataclass(frozen=True)
class Outcome:
    """The results of a simulation."""

    trace: Trace
    state: dict[str, JSONObject]


def simulate(
    scenario: Callable[[Any], Awaitable[None]], settings: Settings | None = None, run_world: Running = running
) -> Outcome:
    """Run a scenario in virtual time in a cluster of `run_world`. Return the trace and the final state."""
    trace, chosen = Trace(), settings or Settings()
    trace.seed = chosen.seed

    async def body() -> Outcome:
        with TemporaryDirectory() as directory:
            async with run_world(chosen, trace, Path(directory)) as world:
                await scenario(world)
                assert list(world.torn.groups()) == []
                return Outcome(trace, await world.state())

    with without_logs():
        try:
            return run(body(), SingleThreadLoop)
        except BaseExceptionGroup as errors:
            (error,) = errors.exceptions if len(errors.exceptions) == 1 else (errors,)
            error.add_note(str(trace))
            raise error from None
        except Exception as error:
            error.add_note(str(trace))
            raise


def simulated(
    chosen: Settings | Callable[..., Settings] | None = None,
) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., None]]:
    """Convert a coroutine to a test in a cluster with these settings, which may depend on test parameters."""

    def decorate(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
        @wraps(test)
        def run(**given: Any) -> None:
            wanted = signature(chosen).parameters if callable(chosen) else ()
            asked = {name: value for name, value in given.items() if name in wanted}
            simulate(partial(test, **given), chosen(**asked) if callable(chosen) else chosen)

        own = signature(test)
        vars(run)["__signature__"] = own.replace(parameters=list(own.parameters.values())[1:])
        return run

    return decorate


@contextmanager
def without_logs() -> Iterator[None]:
    """Disable logging within the `with` block, because a trace has more details and log lines take time."""
    before = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(wrapper_class=before)
