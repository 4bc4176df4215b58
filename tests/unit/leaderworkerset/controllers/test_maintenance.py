"""The controller of moves: what it keeps of foreign objects, what wakes it, and its rights (ADR 23)."""

from typing import Any

from tests.kept import Reads, TrackedObject, assert_declared
from tests.simulation.virtualtime import VirtualClock
from tests.unit.leaderworkerset.controllers.test_disruption import SET, member
from tests.unit.leaderworkerset.core.maintenance.test_reconcile import ON, group, lws, moved

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NODES
from kuberuntime.policyrules import merge
from leaderworkerset.controllers import kept, maintenance
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.permissions import ALL_OF_MAINTENANCE
from leaderworkerset.core.maintenance.movesettings import MoveSettings, must_leave
from leaderworkerset.kinds.managed import MANAGED, managed
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store


def watched() -> dict[str, Any]:
    """Return what a new driver does with changes, by the kind of the object."""
    clock = VirtualClock()
    client = Client(InProcessTransport(ApiServer(Store(), builtin.kinds(), clock), "test"))
    spec = maintenance.specify(MoveSettings())
    driver = spec.build(Caches(client, spec.caches), client, clock)
    return {watch.informer.resource.kind: watch.keys for watch in driver.watches()}


def test_without_a_closed_node_no_pod_wakes_it() -> None:
    keys = watched()
    assert [*keys["Pod"](Change(None, member()))] == []
    assert [*keys["StatefulSet"](Change(None, member()))] == []
    assert [*keys["LeaderWorkerSet"](Change(None, lws()))] == [SET]


def test_only_moves_take_the_right_to_watch_nodes() -> None:
    """The components and the chart add just these to the role of a manager."""
    more = merge((*MANAGED.permissions, *ALL_OF_MAINTENANCE))
    assert {*map(str, merge(managed(moves=MoveSettings()).permissions))} == {*map(str, more)}
    assert not [one for one in MANAGED.permissions if one.resource == NODES and "watch" in one.verbs]


def test_the_caches_keep_what_is_read() -> None:
    reads: list[Reads] = []

    def tracked(obj: JSONObject, projection: Any) -> JSONObject:
        reads.append(Reads(obj, projection))
        return TrackedObject(obj, (), reads[-1])

    node = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    assert must_leave(ON, tracked(node, kept.CLOSABLE_NODE), tracked(member(), kept.EVICTABLE_POD))
    whole = group("0", "n")
    leader = tracked(whole.leader, kept.POD)
    assert moved(lws(1), maintenance.MovableGroup(leader=leader, workers=whole.workers, pods=2, off=("n",))) == [
        "web-0"
    ]
    assert_declared(reads)
