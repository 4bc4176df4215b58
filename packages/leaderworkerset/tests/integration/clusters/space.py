"""Provides a namespace for one test, with the actions, the objects, and the conditions to wait for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from testkit.clusters.cluster import ClusterBackend, Manager
from tests.scenario import Scenario

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.client.transport import Request
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from kuberuntime.plan import Propagation
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.manager import lwsmanager

from .objects import GATE
from .state import State, assert_settled

LIMIT: Final = 60.0
"""The timeout of a condition in seconds. Conditions usually become true within a fraction of a second.

If a StatefulSet follows another of the same name immediately, its first sync sometimes fails, as a ControllerRevision
or pod of the old one is about to be deleted, and no event triggers the next sync.

kube-controller-manager repeats ten failed syncs a second, of all StatefulSets together, after a burst of a hundred. In
1.36, a sync that precedes the last write of its StatefulSet ("not as new as written version") also counts as failed.

Tests cause hundreds of such syncs a minute, so a repetition may wait for tens of seconds (docs/how-to/operate.md).
"""

POLL: Final = 0.1
"""The interval between two reads of objects that have no informer, in seconds."""

T = TypeVar("T")

Expectation: TypeAlias = Callable[[State], None]

MAKING_PODS: Final = (DISAGGREGATED_SETS, LEADERWORKERSETS, DEPLOYMENTS, STATEFULSETS, PODS, PERSISTENT_VOLUME_CLAIMS)
"""The kinds that are deleted after each test, in this order. Owners are first."""

OF_STATEFULSETS: Final = "controller.kubernetes.io/hash"
"""The label of StatefulSet revisions."""

FOLLOWED: Final = (
    DISAGGREGATED_SETS,
    ROLE_SCALERS,
    LEADERWORKERSETS,
    STATEFULSETS,
    PODS,
    SERVICES,
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    EVENTS,
)


@dataclass
class LiveScenario(Scenario):
    """One namespace. `changes` contains all pod changes since the test started."""

    managed_resources = tuple(resource for resource in FOLLOWED if resource is not EVENTS)
    cluster: ClusterBackend
    manager: Manager
    client: Client
    namespace: str
    informers: Mapping[Resource, Informer]
    changes: list[Change] = field(default_factory=list)
    written: int = 0
    """The generation of the test's last write, if the test records it."""
    _generations: dict[str, int] = field(default_factory=dict)
    _invariants: list[Expectation] = field(default_factory=list)
    _broken: list[str] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def state(self) -> State:
        """Return the current objects of the namespace."""
        found = {
            resource: {meta.name(obj): obj for obj in informer.store.list()}
            for resource, informer in self.informers.items()
        }
        revisions = {
            name: obj
            for name, obj in found[CONTROLLER_REVISIONS].items()
            if labels.TEMPLATE_REVISION_HASH in meta.labels(obj) and OF_STATEFULSETS not in meta.labels(obj)
        }
        return State(
            leaderworkersets=found[LEADERWORKERSETS],
            statefulsets=found[STATEFULSETS],
            pods=found[PODS],
            services=found[SERVICES],
            revisions=revisions,
            claims=found[PERSISTENT_VOLUME_CLAIMS],
            events=found[EVENTS],
        )

    async def until(self, expectation: Expectation, *, limit: float = LIMIT) -> State:
        """Wait until the condition is true. Return the state at that time."""
        last: AssertionError | KeyError | None = None
        try:
            async with asyncio.timeout(limit):
                while True:
                    self._changed.clear()
                    state = self.state
                    try:
                        expectation(state)
                    except (AssertionError, KeyError) as missing:
                        last = missing
                        await self._changed.wait()
                    else:
                        break
        except TimeoutError:
            self.manager.check()
            raise AssertionError(f"not within {limit:.0f} s: {last!r}\n{self._overview()}") from last
        if self._broken:
            raise AssertionError("\n".join(self._broken))
        return state

    async def settled(self, name: str = "web", *, limit: float = LIMIT) -> State:
        """Wait until the latest version of the LeaderWorkerSet is fully reconciled."""

        def is_settled(state: State) -> None:
            assert meta.generation(state.leaderworkersets[name]) >= self._generations.get(name, 0)
            assert_settled(state, name)

        return await self.until(is_settled, limit=limit)

    async def eventually(
        self, read: Callable[[], Awaitable[T]], holds: Callable[[T], bool], *, poll: float = POLL
    ) -> T:
        """Read an object without an informer until it satisfies the condition. Return it.

        Use it rarely if a read starts a process.
        """
        found = await read()
        deadline = asyncio.get_running_loop().time() + LIMIT
        while not holds(found):
            assert asyncio.get_running_loop().time() < deadline, f"not within {LIMIT:.0f} s; last: {found}"
            await asyncio.sleep(poll)
            found = await read()
        return found

    def always(self, invariant: Expectation) -> None:
        """Check a condition at each subsequent pod change. `until` fails if the condition was violated."""
        self._invariants.append(invariant)

    async def bring_up(self, lws: JSONObject) -> State:
        """Create a LeaderWorkerSet, and wait until it is fully reconciled."""
        await self.create(lws)
        return await self.settled(meta.name(lws))

    async def patch(self, patch: Any, name: str = "web", *, resource: Resource = LEADERWORKERSETS) -> JSONObject:
        """Change an object. `settled` waits until a LeaderWorkerSet is reconciled after this change."""
        patched = await super().patch(patch, name, resource=resource)
        if resource is LEADERWORKERSETS:
            self._generations[name] = meta.generation(patched)
        return patched

    async def scale(self, replicas: int, name: str = "web") -> JSONObject:
        """Set the number of groups. `settled` waits until this change is reconciled."""
        scaled = await super().scale(replicas, name)
        self._generations[name] = meta.generation(await self.get(LEADERWORKERSETS, name))
        return scaled

    async def delete(
        self, name: str = "web", resource: Resource = LEADERWORKERSETS, *, propagation: Propagation | None = None
    ) -> None:
        """Delete an object."""
        self._generations.pop(name, None)
        await super().delete(name, resource, propagation=propagation)

    async def provide_volumes(self, storage_class: str, count: int) -> None:
        """Create `count` persistent volumes for claims of this storage class."""
        await self.cluster.provide_volumes(self.client, f"{self.namespace}-{storage_class}", storage_class, count)

    async def fail(self, pod: str) -> None:
        """Make the first container of a running pod exit with an error. The container restarts."""
        await self.cluster.restart_container(self.client, await self.get(PODS, pod))

    async def restart_all(self, pod: str) -> None:
        """Make all containers of a running pod of `restarting_template` restart in place."""
        await self.cluster.restart_all(self.client, await self.get(PODS, pod))

    async def complete_container(self, pod: str) -> None:
        """Make the only container of a running pod exit with code 0 and restart."""
        await self.cluster.complete_container(self.client, await self.get(PODS, pod))

    async def end_kept(self, pod: str) -> None:
        """Report, as the node, that a deleted pod with a finalizer has terminated."""
        await self.cluster.end_kept(self.client, await self.get(PODS, pod))

    async def end_pod(self, pod: str, code: int) -> None:
        """Make the only container of a running pod with restart policy `Never` exit with this code."""
        await self.cluster.end_pod(self.client, await self.get(PODS, pod), code)

    async def release(self, *pods: str) -> None:
        """Make gated pods become ready."""
        await self._set_gates(pods, "True")

    @asynccontextmanager
    async def releasing(self) -> AsyncIterator[None]:
        """Make each gated pod become ready as soon as it runs."""
        waiting: asyncio.Queue[JSONObject] = asyncio.Queue()

        def note(change: Change) -> None:
            if (
                change.new is not None
                and meta.status(change.new).get("phase") == "Running"
                and not _is_open(change.new)
            ):
                waiting.put_nowait(change.new)

        async def release() -> None:
            while True:
                with suppress(NotFoundError):
                    await self.release(meta.name(await waiting.get()))

        self.informers[PODS].subscribe(note)
        task = asyncio.create_task(release())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def close(self, *pods: str) -> None:
        """Make gated pods become unready."""
        await self._set_gates(pods, "False")

    @asynccontextmanager
    async def second_manager(self) -> AsyncIterator[None]:
        """Run a second set of controllers in parallel with the controllers of the cluster."""
        client = Client(self.cluster.transport("lws"))
        async with lwsmanager.controllers(client, self.cluster.clock):
            yield
        await client.close()

    async def _set_gates(self, pods: tuple[str, ...], status: str) -> None:
        condition = {"type": GATE, "status": status}
        for pod in pods:
            patch = {"status": {"conditions": [condition]}}
            await self.client.patch(PODS, self.key(pod), patch, kind="strategic", subresource="status")

    def note(self, change: Change) -> None:
        """Record a change."""
        self._changed.set()
        if change.object["kind"] != PODS.kind:
            return
        self.changes.append(change)
        for invariant in self._invariants:
            try:
                invariant(self.state)
            except AssertionError as broken:
                self._broken.append(str(broken))

    def story(self) -> list[str]:
        """Return all pod changes, one line each."""
        return [
            f"{'-' if change.new is None else '+' if change.old is None else '~'} {meta.name(change.object)}"
            f" {meta.uid(change.object)[:8]} {_pod_line(change.object)}"
            for change in self.changes
        ]

    def _overview(self) -> str:
        state = self.state
        lines = [
            *(
                f"lws {name}: {obj.get('spec', {}).get('replicas')} {obj.get('status')}"
                for name, obj in state.leaderworkersets.items()
            ),
            *(
                f"sts {name}: {meta.spec(obj).get('replicas')} {obj.get('status')}"
                for name, obj in state.statefulsets.items()
            ),
            *(f"pod {name}: {_pod_line(obj)}" for name, obj in state.pods.items()),
            *(f"warning: {event['note']}" for event in state.events.values() if event.get("type") == "Warning"),
        ]
        return "\n".join(lines)


def _is_open(pod: JSONObject) -> bool:
    gated = any(gate["conditionType"] == GATE for gate in meta.spec(pod).get("readinessGates") or [])
    return not gated or meta.is_condition_true(pod, GATE)


def _pod_line(pod: JSONObject) -> str:
    conditions = {one["type"]: one["status"] for one in meta.status(pod).get("conditions") or []}
    deleting = " deleting" if meta.is_deleting(pod) else ""
    return f"{meta.status(pod).get('phase')}{deleting} on {meta.spec(pod).get('nodeName')} {conditions}"


@asynccontextmanager
async def space_of(cluster: ClusterBackend, manager: Manager, client: Client) -> AsyncIterator[LiveScenario]:
    """Create a namespace, watch it, and delete its objects at the end."""
    created = await client.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
    )
    namespace = meta.name(created)
    await cluster.await_namespace(client, namespace)
    informers = {resource: Informer(client, Selection(resource, namespace)) for resource in FOLLOWED}
    one = LiveScenario(cluster, manager, client, namespace, informers)
    async with asyncio.TaskGroup() as tasks:
        running = []
        for informer in informers.values():
            informer.subscribe(one.note)
            running.append(tasks.create_task(informer.run()))
        for informer in informers.values():
            await informer.wait_synced()
        try:
            yield one
        finally:
            for task in running:
                task.cancel()
            await _clear(client, namespace)


async def _clear(client: Client, namespace: str) -> None:
    """Delete the owners of pods, all pods, and the events. An embedded cluster stores at most 5,000 events.

    The namespace stays: its deletion would take two requests for each kind of the cluster.
    """
    for resource in (*MAKING_PODS, EVENTS):
        await client.send(Request("DELETE", resource.path(namespace), (("propagationPolicy", "Background"),)))
