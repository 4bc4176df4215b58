"""Tests the checks of the simulation on single objects."""

from typing import Any

import pytest
from tests.simulation.checks import revisions
from tests.simulation.checks.facts import Facts
from tests.simulation.cluster import NAMESPACE

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.apiserver.storage.store import Change, StoreKey


def item(kind: str, name: str, owner: JSONObject | None = None, **metadata: Any) -> JSONObject:
    controller = owner and {"kind": owner["kind"], "uid": owner["metadata"]["uid"], "controller": True}
    stored = {"name": name, "namespace": NAMESPACE, "uid": f"{kind}/{name}", **metadata}
    return {"kind": kind, "metadata": stored | ({"ownerReferences": [controller]} if controller else {}), "spec": {}}


@pytest.mark.parametrize("removed", [None, "StatefulSet", "Pod"])
def test_key_needs_a_revision_while_its_controllers_exist(removed: str | None) -> None:
    """A pod that a slow controller creates for a deleted StatefulSet is not an error of the manager."""
    web = item("LeaderWorkerSet", "web") | {"spec": {"leaderWorkerTemplate": {}}}
    leaders = item("StatefulSet", "web", web)
    leader = item("Pod", "web-0", leaders)
    workers = item("StatefulSet", "web-0", leader)
    worker = item("Pod", "web-0-1", workers, labels={labels.TEMPLATE_REVISION_HASH: "abc"})
    facts = Facts()
    kinds = {"LeaderWorkerSet": LEADERWORKERSETS, "StatefulSet": STATEFULSETS, "Pod": PODS}
    for obj in (web, leaders, leader, workers, worker):
        facts.put(kinds[obj["kind"]].group_resource, obj)
    for obj in (workers, leader):
        if obj["kind"] == removed:
            facts.remove(kinds[obj["kind"]].group_resource, obj)
    change = Change(1, "ADDED", StoreKey(PODS.group_resource, NAMESPACE, "web-0-1"), worker, b"", None)
    found = list(revisions.without_content(facts, change))
    assert found == ([] if removed else ["Pod web-0-1 has the key abc, which no revision has"])
