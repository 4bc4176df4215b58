"""Tests LeaderWorkerSet metrics, which are read from the cache or counted at each change."""

from typing import Any

import pytest
from tests import builders
from tests.builders import leaderworkerset_object
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster

from kuberuntime.cache.informer import Change, Store
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.serving.metrics import Metrics
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.moves import moves
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.controllers import metrics as domain
from leaderworkerset.core import decisionevents
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds

pytestmark = [pytest.mark.virtual_time, pytest.mark.slow]


def samples(metrics: Metrics) -> dict[str, float]:
    lines = metrics.render().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def with_available(status: str | None, at: str = "2026-01-01T00:01:00Z") -> JSONObject:
    conditions = [{"type": "Available", "status": status, "lastTransitionTime": at}] if status else []
    return leaderworkerset_object(
        metadata={"creationTimestamp": "2026-01-01T00:00:00Z"}, status={"conditions": conditions}
    )


@pytest.mark.parametrize(
    ("old", "new", "seconds"),
    [
        (with_available(None), with_available("True"), 60.0),
        (with_available("False", "2026-01-01T00:00:50Z"), with_available("True"), 10.0),
        (with_available("True"), with_available("True"), None),
        (with_available("True"), with_available("False"), None),
        (None, with_available("True"), None),
        (with_available("False"), None, None),
    ],
    ids=["first time", "again", "still", "no more", "seen at the start", "deleted"],
)
def test_time_to_ready_is_computed_from_the_objects(
    old: JSONObject | None, new: JSONObject | None, seconds: float | None
) -> None:
    assert domain.seconds_to_ready(Change(old, new)) == seconds


@pytest.mark.parametrize(
    ("spec", "status", "counts"),
    [
        ({"replicas": 4}, {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1}, (4, 3, 2, 1)),
        ({}, {}, (1, 0, 0, 0)),
        ({"replicas": 0}, {}, (0, 0, 0, 0)),
    ],
)
def test_groups_are_counted_by_state(spec: Any, status: Any, counts: tuple[int, ...]) -> None:
    assert tuple(domain.count_groups({"spec": spec, "status": status}).values()) == counts


def test_moves_are_counted() -> None:
    metrics = Metrics()
    counted = domain.LeaderWorkerSetMetrics(metrics, {})
    counted.count_event(moves.moving_group_event(leaderworkerset_object(), "web-1", {"node-7"}))
    counted.count_event(decisionevents.updating(leaderworkerset_object(), "Updating replica 1"))
    assert samples(metrics)["lws_group_moves_total"] == 1


async def test_metrics_cover_the_sets_of_a_cluster() -> None:
    cluster, metrics = NodelessCluster(), Metrics()
    cluster.instruments = MANAGED.instruments(metrics)
    async with cluster.running(), cluster.managed():
        await cluster.bring_up(leaderworkerset_object(replicas=2, size=2))
        place = f'leaderworkerset="web",namespace="{NAMESPACE}"'
        found = samples(metrics)
        assert {state: found[f'lws_groups{{{place},state="{state}"}}'] for state in ("desired", "ready")} == {
            "desired": 2,
            "ready": 2,
        }
        assert found[f"lws_rollout_progress{{{place}}}"] == 1
        assert found['lws_leaderworkersets{condition="Available"}'] == 1
        assert found["lws_time_to_ready_seconds_count"] == 1
        assert found['controller_runtime_reconcile_total{controller="leaderworkerset",result="success"}'] > 0

        await cluster.delete("web-0-1", PODS)
        await cluster.settle()
        assert samples(metrics)['lws_group_recreations_total{cause="pod-deleted"}'] == 1
        await cluster.fail("web-1-1")
        await cluster.settle(120)
        assert samples(metrics)['lws_group_recreations_total{cause="container-restarted"}'] == 1

        await cluster.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "web"))
        await cluster.settle()
        assert f'lws_groups{{{place},state="ready"}}' not in samples(metrics)
    assert "lws_groups" not in metrics.render().decode()


async def test_failing_groups_have_metrics_only_while_they_exist() -> None:
    """A LeaderWorkerSet has one log line, or none if its groups never failed."""
    cluster, metrics = NodelessCluster(), Metrics()
    cluster.instruments = MANAGED.instruments(metrics)
    place = f'leaderworkerset="web",namespace="{NAMESPACE}"'

    def failing() -> dict[str, float]:
        names = {state: f'lws_groups_failing{{{place},state="{state}"}}' for state in ("waiting", "exhausted")}
        found = samples(metrics)
        return {state: found[name] for state, name in names.items() if name in found}

    async with cluster.running(), cluster.managed():
        budget = {"annotations": {labels.MAX_GROUP_RESTARTS: "2"}}
        await cluster.bring_up(leaderworkerset_object(replicas=2, size=2, metadata=budget))
        assert failing() == {}
        await cluster.fail("web-0-1")
        await cluster.settle()
        assert failing() == {"waiting": 0, "exhausted": 0}
        await cluster.fail("web-0-1")
        await cluster.settle(2)
        assert failing() == {"waiting": 1, "exhausted": 0}
        await cluster.settle(30)
        await cluster.fail("web-0-1")
        await cluster.settle()
        assert failing() == {"waiting": 0, "exhausted": 1}
        assert samples(metrics)['lws_leaderworkersets{condition="Degraded"}'] == 1
        assert samples(metrics)[f"lws_group_recreations_in_a_row{{{place}}}"] == 3
        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
        await cluster.settle(60)
        assert failing() == {"waiting": 0, "exhausted": 0}
        assert samples(metrics)[f"lws_group_recreations_in_a_row{{{place}}}"] == 0
        await cluster.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "web"))
        await cluster.settle()
        assert failing() == {}


async def test_waiting_moves_have_metrics_only_while_they_exist() -> None:
    """Groups that are being moved are not counted, so the metric shows whether moves make progress."""
    cluster, metrics = NodelessCluster(), Metrics()
    cluster.kinds = managed_kinds(configured={names.MOVES: MaintenanceSettings()})
    cluster.instruments = cluster.kinds.instruments(metrics)
    waiting = f'lws_groups_to_move{{leaderworkerset="web",namespace="{NAMESPACE}"}}'
    async with cluster.running(), cluster.managed():
        cluster.ready_pods = lambda pod: not meta.name(pod).startswith("web-0")
        await cluster.bring_up(leaderworkerset_object(replicas=3, size=2))
        assert waiting not in samples(metrics)
        for leader in ("web-1", "web-2"):
            patch = {"metadata": {"annotations": {labels.MOVE_GROUP: "true"}}}
            await cluster.patch(patch, leader, resource=PODS)
        await cluster.settle()
        assert samples(metrics)[waiting] == 2
        cluster.ready_pods = lambda pod: not meta.name(pod).startswith("web-2")
        await cluster.delete("web-0", PODS)
        await cluster.settle()
        assert samples(metrics)[waiting] == 1
        cluster.ready_pods = lambda _: True
        await cluster.delete("web-2", PODS)
        await cluster.settle()
        assert waiting not in samples(metrics)


def test_group_with_an_unknown_leader_counts_as_deleted() -> None:
    reference = {"namespace": NAMESPACE, "name": "web-0"}
    assert domain.recreation_cause(reference, Store({})) == domain.DELETED
