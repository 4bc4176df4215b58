"""Tests the triggers, cached fields and permissions of the disruption budget controller."""

from contextlib import closing
from typing import Any

import pytest
from testkit.virtualtime import VirtualClock
from tests import builders
from tests.kept import Reads, TrackedObject, assert_declared
from tests.unit.leaderworkerset.capabilities.disruption.test_reconcile import leader, lws, plan, stored

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, POD_DISRUPTION_BUDGETS
from kuberuntime.policyrules import merge
from leaderworkerset.api import labels
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.disruption import reconcile
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.controllers import cachedfields, disruption
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.permissions import ALL_OF_DISRUPTION
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

SET = ObjectKey(builders.NAMESPACE, "web")


def member(index: int = 0, *, node: str = "n", **metadata: Any) -> JSONObject:
    """Return a pod of group 0. The pod with index 0 is the leader."""
    own = {labels.NAME: "web", labels.GROUP_INDEX: "0", labels.WORKER_INDEX: str(index)}
    fields = {"name": f"web-0-{index}", "namespace": builders.NAMESPACE, "uid": "u", "labels": own} | metadata
    return {"kind": "Pod", "metadata": fields, "spec": {"nodeName": node}}


def watched(settings: DisruptionSettings) -> dict[str, Any]:
    """Return the reactions of a new driver to changes, by kind."""
    clock = VirtualClock()
    with closing(Store()) as store:
        client = Client(InProcessTransport(ApiServer(store, builtin.kinds(), clock), "test"))
        spec = disruption.specify(settings)
        caches = Caches(client, spec.caches)
        driver = spec.build(caches, client, clock)
        return {watch.informer.resource.kind: watch.keys for watch in driver.watches()}


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, member(), True),
        (member(), None, True),
        (member(), member(deletionTimestamp="2026-01-01T00:00:00Z"), True),
        (member(), member(annotations={labels.SIZE: "4"}), True),
        (member(), member(annotations={labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}), True),
        (member(), member(finalizers=["x"]), False),
        (None, member(1), False),
    ],
)
def test_changes_of_leaders_enqueue_the_budget_controller(
    old: JSONObject | None, new: JSONObject | None, wakes: bool
) -> None:
    """The status of the budget shows whether a group is complete."""
    keys = watched(DisruptionSettings())["Pod"]
    assert [*keys(Change(old, new))] == ([SET] if wakes else [])


def test_nodes_are_not_read_when_they_are_not_watched() -> None:
    blind = DisruptionSettings(watches_nodes=False)
    assert "Node" not in watched(blind)
    rights = {(one.resource, verb) for one in disruption.specify(blind).permissions for verb in one.verbs}
    assert not [verb for resource, verb in rights if resource == NODES]


def test_budget_permissions_are_used_by_budgets_only() -> None:
    """The components and the chart add exactly these permissions to the manager's role."""
    more = merge((*MANAGED.permissions, *ALL_OF_DISRUPTION))
    found = merge(managed_kinds(configured={names.DISRUPTION: DisruptionSettings()}).permissions)
    assert {*map(str, found)} == {*map(str, more)}
    assert not [one for one in MANAGED.permissions if one.resource == POD_DISRUPTION_BUDGETS]


def test_caches_keep_all_fields_that_decisions_read() -> None:
    reads: list[Reads] = []

    def tracked(obj: JSONObject, projection: Any) -> JSONObject:
        reads.append(Reads(obj, projection))
        return TrackedObject(obj, (), reads[-1])

    obj = lws()
    leaders = [leader(str(index)) | {"kind": "Pod"} for index in range(2)]
    budgets = [stored(obj, "0", least=0), stored(obj, "1")]
    whole = plan(obj, leaders, budgets, wanted=["1"])
    pods = [tracked(one, cachedfields.POD) for one in leaders]
    assert plan(obj, pods, [tracked(one, cachedfields.DISRUPTION_BUDGET) for one in budgets], wanted=["1"]) == whole
    taints = [{"key": "a", "effect": "NoSchedule"}]
    node = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": taints}}
    assert reconcile.rejects_pod(
        tracked(node, cachedfields.CLOSABLE_NODE), tracked(member(), cachedfields.EVICTABLE_POD)
    )
    assert_declared(reads)
    lean = [cachedfields.DISRUPTION_BUDGET(one) for one in budgets]
    assert plan(obj, [cachedfields.POD(one) for one in leaders], lean, wanted=["1"]) == whole
    assert whole.actions
