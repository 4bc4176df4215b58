"""Tests which groups must be moved from nodes, based on cached objects."""

from types import SimpleNamespace
from typing import Any

from kuberuntime.cache import watch
from kuberuntime.cache.cache import Writer
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.controllers import indexes
from leaderworkerset.controllers.maintenancenodes import POD_CACHE, MaintenanceNodes

WEB: JSONObject = {"metadata": {"namespace": "default", "name": "web", "uid": "web"}}
CLOSED: JSONObject = {"metadata": {"name": "node-1"}, "spec": {"unschedulable": True}}


def obj(kind: str, name: str, uid: str, owner: tuple[str, str, str], rank: int = 0) -> JSONObject:
    """Return an object of group 0, or the pod with this rank."""
    named = {labels.NAME: "web", labels.GROUP_INDEX: "0", labels.WORKER_INDEX: str(rank)}
    reference = {"apiVersion": "v1", "kind": owner[0], "name": owner[1], "uid": owner[2], "controller": True}
    metadata = {"namespace": "default", "name": name, "uid": uid, "labels": named, "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"nodeName": f"node-{rank}"}}


def leaving(leader: JSONObject, workers: JSONObject, worker: JSONObject) -> Any:
    """Return the groups that must be moved from node-1, where the worker runs."""
    stores = {POD_CACHE.selection: (leader, worker), indexes.STATEFULSET_CACHE.selection: (workers,)}
    found: dict[Any, Any] = {indexes.CLOSABLE_NODE_CACHE.selection: SimpleNamespace(subscribe=lambda _: None)}
    for cache in (indexes.POD_CACHE.merge(POD_CACHE), indexes.STATEFULSET_CACHE):
        store = Writer(cache.indexes)
        for one in stores[cache.selection]:
            store.apply(watch.ObjectApplied(one))
        found[cache.selection] = SimpleNamespace(store=store)

    class Opened:
        def __getitem__(self, cache: Any) -> Any:
            return found[cache.selection]

    caches: Any = Opened()
    nodes = MaintenanceNodes(caches, MaintenanceSettings(moves_by_default=True))
    nodes._handle_node_change(SimpleNamespace(new=CLOSED, object=CLOSED))  # type: ignore[arg-type]
    return nodes.observe(WEB)


LEADER = obj("Pod", "web-0", "new", ("StatefulSet", "web", "leaders"))
WORKERS = obj("StatefulSet", "web-0", "workers", ("Pod", "web-0", "new"))
BEFORE = obj("StatefulSet", "web-0", "before", ("Pod", "web-0", "old"))


def worker(statefulset: str) -> JSONObject:
    return obj("Pod", "web-0-1", "worker", ("StatefulSet", "web-0", statefulset), rank=1)


def test_group_with_a_worker_on_a_closed_node_must_leave() -> None:
    assert leaving(LEADER, WORKERS, worker("workers")) == {"web-0": {"node-1"}}


def test_workers_of_an_earlier_leader_do_not_move_the_new_one() -> None:
    """The workers will be deleted. Previously, the new leader was also deleted, although it was unscheduled."""
    assert leaving(LEADER, WORKERS, worker("before")) == {}
    assert leaving(LEADER, BEFORE, worker("before")) == {}
