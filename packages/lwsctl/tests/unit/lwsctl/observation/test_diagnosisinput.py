"""Tests that a diagnosis sends few, limited requests, and has a note about forbidden requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from testkit.fakeclock import FakeClock
from testkit.fakes import failure
from testkit.transports import RequestTransport
from testkit.virtualtime import run
from tests.explanations.builders import NOW, ago, conditions, container, event, lws, node, placed, pod, ready
from tests.explanations.situations import OWN_WEBHOOK

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFULSETS,
)
from leaderworkerset.api import labels
from leaderworkerset.core.admission import podpolicy
from lwsctl.diagnosis.causes.schedulinggates import GROUPED
from lwsctl.diagnosis.observed import QUEUED_WORKLOADS, Observed
from lwsctl.model.leaderworkerset import view
from lwsctl.observation import diagnosisinput, lists
from lwsctl.views.selection import Selection

AVAILABLE = {"conditions": conditions(Available="True"), "readyReplicas": 1, "updatedReplicas": 1}
SHORT = {"type": "PodScheduled", "status": "False", "message": "0/9 nodes are available: 9 Insufficient cpu."}


@dataclass
class Server(RequestTransport):
    """Responds to list requests by path with objects, pages or an error. Other kinds are not served."""

    lists: Mapping[str, Sequence[JSONObject] | int]
    page: int = 500
    asked: list[str] = field(default_factory=list)

    async def request(self, request: Request) -> Response:
        self.asked.append(request.path)
        found = self.lists.get(request.path, 404)
        if isinstance(found, int):
            return failure(found, {403: "Forbidden", 404: "NotFound", 500: "InternalError"}[found], "no")
        query = dict(request.query)
        start = int(query.get("continue", "0"))
        rest = {"continue": str(start + self.page)} if start + self.page < len(found) else {}
        body = {"metadata": rest, "items": list(found[start : start + self.page])}
        return Response(200, {}, msgspec.json.encode(body))


def paths(*resources: Any) -> dict[str, Any]:
    """Return empty lists of these kinds in the namespace."""
    return {one.path("prod"): [] for one in resources}


def observe(server: Server, of: JSONObject | None = None, target: Selection | None = None) -> Observed:
    """Return the observation of a workload with the pods that the server lists."""
    members = server.lists[PODS.path("prod")]
    assert not isinstance(members, int)
    read = lists.Lists(Client(server))
    return run(
        diagnosisinput.observe_view(read, view(of or lws(), members), target or Selection("web"), FakeClock(NOW))
    )


def test_healthy_set_that_ran_long_needs_no_requests() -> None:
    calm = {"containerStatuses": [container(running={"startedAt": ago(3600)})]}
    server = Server({PODS.path("prod"): [placed(0, rank, made=3700, ready=True, status=calm) for rank in (0, 1)]})
    found = observe(server, lws(status=AVAILABLE))
    assert server.asked == []
    assert found.view.groups[0].is_ready


def test_healthy_set_that_is_young_needs_its_memory() -> None:
    """Tests records of recreations, and events for evictions."""
    records, events = CONTROLLER_REVISIONS.path("prod"), CORE_EVENTS.path("prod")
    server = Server({PODS.path("prod"): [ready(), ready(0, 1)], records: [], events: []})
    found = observe(server, lws(status=AVAILABLE))
    assert server.asked == [records, events]
    assert found.view.groups[0].is_ready


def test_starting_pods_need_neither_nodes_nor_queues() -> None:
    named: dict[str, Any] = {NODES.path("", "node-0"): 404}
    server = Server(
        {PODS.path("prod"): [placed(), placed(0, 1)]}
        | paths(CORE_EVENTS, STATEFULSETS, CONTROLLER_REVISIONS, SERVICES)
        | named
    )
    found = observe(server)
    assert set(server.asked) == {
        CORE_EVENTS.path("prod"),
        CONTROLLER_REVISIONS.path("prod"),
        SERVICES.path("prod"),
        NODES.path("", "node-0"),
    }
    assert found.objects[NODES] == []


def test_unscheduled_pods_need_nodes_claims_and_running_pods() -> None:
    found_there = {PODS.path(): [placed()], NODES.path(): [node()]}
    claiming = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]}
    waiting = {PODS.path("prod"): [pod(spec=claiming, status={"conditions": [SHORT]})]}
    server = Server(paths(CORE_EVENTS, PERSISTENT_VOLUME_CLAIMS) | waiting | found_there)
    found = observe(server)
    assert [one["metadata"]["name"] for one in found.get(NODES)] == ["node-0"]
    assert found.running_pods is not None
    assert len(found.running_pods) == 1
    assert found.was_read(PERSISTENT_VOLUME_CLAIMS)


def test_objects_that_no_cause_needs_are_not_read() -> None:
    """All pods exist and are unscheduled. StatefulSets need no action, and there are no claims or gangs."""
    waiting = [pod(0, at, status={"conditions": [SHORT]}) for at in (0, 1)]
    server = Server({PODS.path("prod"): waiting, PODS.path(): [], NODES.path(): []} | paths(CORE_EVENTS))
    observe(server)
    assert sorted(server.asked) == sorted(
        [CORE_EVENTS.path("prod"), CONTROLLER_REVISIONS.path("prod"), NODES.path(), PODS.path()]
    )


@pytest.mark.parametrize("mark", [labels.GANG_GROUP, "scheduling.k8s.io/group-name"])
def test_pods_that_start_as_a_group_need_its_objects(mark: str) -> None:
    waiting = pod(metadata={"annotations": {mark: "web-0-x"}}, status={"conditions": [SHORT]})
    server = Server({PODS.path("prod"): [waiting]})
    found = observe(server)
    assert all(found.was_read(kind) for _, kind in GROUPED)


def test_list_beyond_the_bound_is_not_read_to_its_end() -> None:
    many = [node(f"node-{number}") for number in range(lists.MOST + 1)]
    server = Server({PODS.path("prod"): [pod(status={"conditions": [SHORT]})], PODS.path(): many, NODES.path(): many})
    found = observe(server)
    assert not found.was_read(NODES)
    assert NODES not in found.unread_kinds
    assert found.running_pods is None
    assert server.asked.count(NODES.path()) == lists.MOST / 500


def test_forbidden_and_failed_reads_are_noted() -> None:
    server = Server(
        {
            PODS.path("prod"): [pod(status={"conditions": [SHORT]})],
            CORE_EVENTS.path("prod"): 403,
            NODES.path(): 403,
            STATEFULSETS.path("prod"): 500,
        }
    )
    found = observe(server)
    assert found.unread_kinds == {CORE_EVENTS, NODES, STATEFULSETS}
    assert found.get(CONTROLLER_REVISIONS) == []
    assert found.was_read(CONTROLLER_REVISIONS)


def test_manager_is_read_when_the_spec_is_not_observed() -> None:
    server = Server({PODS.path("prod"): []})
    found = observe(server, lws(status={"observedGeneration": 0}))
    assert {DEPLOYMENTS.path(), LEASES.path()} <= set(server.asked)
    assert found.was_read(DEPLOYMENTS)


def test_pod_policy_is_read_when_its_webhook_is_not_reached() -> None:
    failed = event("StatefulSet", "web", "FailedCreate", OWN_WEBHOOK)
    server = Server({PODS.path("prod"): [], CORE_EVENTS.path("prod"): [failed]})
    found = observe(server)
    assert {CONFIG_MAPS.path(), *(kind.path() for kind in podpolicy.KINDS)} <= set(server.asked)
    assert all(map(found.was_read, podpolicy.KINDS))


def test_kueue_workloads_are_read_in_the_served_version() -> None:
    newer = diagnosisinput.NEWER_WORKLOADS.path("prod")
    gated = pod(spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    server = Server({PODS.path("prod"): [gated], newer: [{"metadata": {"name": "lws-web-0"}}]})
    found = observe(server)
    assert [one["metadata"]["name"] for one in found.get(QUEUED_WORKLOADS)] == ["lws-web-0"]
