"""Implements the gang gate controller. It observes nodes and pods, and calls `core/gang/gate.py`.

It has one key, because groups compete for the same nodes. Only one plan is executed at a time, and its writes are
observed before the next one. The controller watches all running pods in the cluster and all nodes, and caches few of
their fields. It runs only in a manager whose configuration enables the built-in gate. The sums of pod requests on
each node are updated after each change.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from kuberuntime.plan import Plan
from leaderworkerset.controllers import cachedfields, permissions
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.decisioncost import is_large
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core.gang import fit
from leaderworkerset.core.gang.gate import ObservedCluster, group_name, is_gated, reconcile

NAME: Final = "ganggate"
KEY: Final = ObjectKey("", "groups")
"""The only key, which represents all waiting groups."""

BY_STATE: Final = "state"
UNBOUND: Final = "unbound"
GATED: Final = "gated"
BY_GANG: Final = "gang"


def states(pod: JSONObject) -> Iterable[str]:
    """Index unbound pods, and pods with the gate."""
    if not meta.spec(pod).get("nodeName"):
        yield UNBOUND
        if is_gated(pod) and group_name(pod):
            yield GATED


def gang_values(pod: JSONObject) -> Iterable[str]:
    """Index a pod by its group."""
    name = group_name(pod)
    return (f"{meta.namespace(pod)}/{name}",) if name else ()


NODE_CACHE: Final = Cache(Selection(NODES), keep=cachedfields.same_fields(cachedfields.NODE))
POD_CACHE: Final = Cache(
    Selection(PODS, field_selector="status.phase!=Succeeded,status.phase!=Failed"),
    {BY_STATE: states, BY_GANG: gang_values},
    keep=cachedfields.same_fields(cachedfields.PLACED_POD),
)


class Usage:
    """The total requests of bound pods by node name."""

    def __init__(self) -> None:
        self._sums: dict[str, Counter[str]] = {}

    def update(self, change: Change) -> None:
        """Update the totals for an added, changed or deleted pod."""
        if (
            change.old is not None
            and change.new is not None
            and (meta.uid(change.old) == meta.uid(change.new) and meta.spec(change.old) == meta.spec(change.new))
        ):
            return
        for pod, sign in ((change.old, -1), (change.new, 1)):
            node = "" if pod is None else str(meta.spec(pod).get("nodeName") or "")
            if pod is not None and node:
                self._add(node, fit.read_requests(pod), sign)

    def snapshot(self) -> Mapping[str, Mapping[str, int]]:
        """Return the current totals."""
        return {node: dict(amounts) for node, amounts in self._sums.items()}

    def _add(self, node: str, requests: Mapping[str, int], sign: int) -> None:
        sums = self._sums.setdefault(node, Counter())
        for name, amount in requests.items():
            sums[name] += sign * amount
        if not sums[fit.PODS]:
            del self._sums[node]


class GangGateDriver(Driver):
    """Observes nodes, pods and waiting groups."""

    def __init__(self, caches: Caches) -> None:
        self._nodes, self._pods = caches[NODE_CACHE], caches[POD_CACHE]
        self._usage = Usage()
        self._pods.subscribe(self._usage.update)

    async def plan(self, _key: ObjectKey) -> Plan:
        """Select the groups that can start. If there are many pods or nodes, use a thread."""
        gated = self._pods.store.by_index(BY_STATE, GATED)
        if not gated:
            return Plan()
        observed = self._observe(gated)
        facts = len(observed.nodes) + len(observed.unbound) + len(observed.members)
        return await asyncio.to_thread(reconcile, observed) if is_large((), facts) else reconcile(observed)

    def watches(self) -> Sequence[Watch]:
        """Return the watches. Changes that affect neither free resources nor gates do not enqueue the key."""
        return Watch(self._nodes, keys_of_node), Watch(self._pods, keys_of_pod)

    def _observe(self, gated: Sequence[JSONObject]) -> ObservedCluster:
        groups = dict.fromkeys(value for pod in gated for value in gang_values(pod))
        return ObservedCluster(
            nodes=self._nodes.store.list(),
            used=self._usage.snapshot(),
            unbound=self._pods.store.by_index(BY_STATE, UNBOUND),
            members=[pod for group in groups for pod in self._pods.store.by_index(BY_GANG, group)],
        )


def keys_of_node(change: Change) -> Iterable[ObjectKey]:
    """Enqueue the key after a node was added or deleted, or its allocatable resources changed."""
    parts = [
        None if node is None else (meta.labels(node), meta.spec(node), meta.status(node).get("allocatable"))
        for node in (change.old, change.new)
    ]
    return () if parts[0] == parts[1] else (KEY,)


def keys_of_pod(change: Change) -> Iterable[ObjectKey]:
    """Enqueue the key after a pod was added, deleted or bound, started to terminate, or lost a gate."""
    parts = [
        None if pod is None else (meta.uid(pod), meta.is_deleting(pod), meta.spec(pod))
        for pod in (change.old, change.new)
    ]
    return () if parts[0] == parts[1] else (KEY,)


def build(caches: Caches, client: Client, clock: Clock) -> GangGateDriver:
    """Build the driver, for which all required objects are cached."""
    del client, clock
    return GangGateDriver(caches)


SPEC: Final = ControllerSpec(name=NAME, caches=(NODE_CACHE, POD_CACHE), build=build, writes=permissions.GANG_GATE)
