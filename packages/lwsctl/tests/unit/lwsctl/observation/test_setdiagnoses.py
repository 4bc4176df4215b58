"""Tests that diagnoses of many LeaderWorkerSets from shared lists equal separate diagnoses."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
from testkit.fakeclock import FakeClock
from testkit.fakes import failure
from testkit.transports import RequestTransport
from testkit.virtualtime import run
from tests.explanations.builders import NAMESPACE, NOW, ago, conditions, event, lws, node, placed, pod, ready
from tests.unit.lwsctl.observation.test_diagnosisinput import AVAILABLE, SHORT

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection as Query
from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFULSETS,
    STORAGE_CLASSES,
    Resource,
)
from leaderworkerset.api import labels
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import view
from lwsctl.observation import diagnosisinput, setdiagnoses
from lwsctl.observation.lists import Lists, TooManyError
from lwsctl.views.selection import Selection

REFUSED = "create Pod {0}-0 in StatefulSet {0} failed error: no PriorityClass with name urgent was found"


@dataclass
class Server(RequestTransport):
    """Responds to list requests for one or all namespaces, filtered by labels."""

    objects: Mapping[Resource, Sequence[JSONObject]]
    forbidden: frozenset[Resource] = frozenset()
    asked: list[str] = field(default_factory=list)

    async def request(self, request: Request) -> Response:
        self.asked.append(request.path)
        for resource, objects in self.objects.items():
            for namespace in ("", "prod", "test"):
                if request.path == resource.path(namespace):
                    if resource in self.forbidden:
                        return failure(403, "Forbidden", "no")
                    return self._list(request, [one for one in objects if namespace in ("", meta.namespace(one))])
        for one in self.objects.get(NODES, ()):
            if request.path == NODES.path("", meta.name(one)) and NODES not in self.forbidden:
                return Response(200, {}, msgspec.json.encode(one))
        is_refused = request.path.startswith(NODES.path()) and NODES in self.forbidden
        return failure(403, "Forbidden", "no") if is_refused else failure(404, "NotFound", "no")

    def _list(self, request: Request, objects: Sequence[JSONObject]) -> Response:
        key, _, value = dict(request.query).get("labelSelector", "").partition("=")
        found = [
            one for one in objects if not key or (key in meta.labels(one) and value in ("", meta.labels(one)[key]))
        ]
        return Response(200, {}, msgspec.json.encode({"metadata": {}, "items": found}))


def named(obj: JSONObject, name: str, namespace: str = NAMESPACE) -> JSONObject:
    """Return an object of the LeaderWorkerSet `web` for a different LeaderWorkerSet."""
    text = msgspec.json.encode(obj).replace(b'"web', f'"{name}'.encode()).replace(b'"prod"', f'"{namespace}"'.encode())
    found: JSONObject = msgspec.json.decode(text)
    return found


def namespace_of(found: JSONObject, namespace: str) -> JSONObject:
    return found | {"metadata": found["metadata"] | {"namespace": namespace}}


SHORT_POD = pod(status={"conditions": [SHORT]})
WAITING = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
CLAIMING = pod(
    spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]},
    status={"conditions": [{"type": "PodScheduled", "status": "False", "message": WAITING}]},
)


def situation() -> tuple[list[JSONObject], dict[Resource, list[JSONObject]]]:
    """Return workloads in two namespaces, one for each type of failure, and all their objects."""
    sets, objects = (
        [],
        {one: list[JSONObject]() for one in (STATEFULSETS, CONTROLLER_REVISIONS, SERVICES, STORAGE_CLASSES)},
    )
    pods: list[JSONObject] = []
    events: list[JSONObject] = []
    for name, namespace in (("web", "prod"), ("web-0", "prod"), ("a-web", "prod"), ("web", "test")):
        sets.append(named(lws(), name, namespace))
        refused = event("StatefulSet", name, "FailedCreate", REFUSED.format(name))
        events.append(
            namespace_of(refused | {"involvedObject": refused["involvedObject"] | {"namespace": namespace}}, namespace)
        )
    sets += [named(lws(status=AVAILABLE), "fine"), named(lws(), "short"), named(lws(), "claims"), named(lws(), "lost")]
    pods += [named(ready(), "fine"), named(ready(0, 1), "fine"), named(SHORT_POD, "short"), named(CLAIMING, "claims")]
    pods += [named(placed(node="node-9"), "lost"), named(placed(0, 1, node="node-0"), "lost")]
    told = event("PersistentVolumeClaim", "data-claims-0", "ProvisioningFailed", "no room on the disks")
    claim = {
        "metadata": {"name": "data-claims-0", "namespace": "prod", "creationTimestamp": ago(200)},
        "spec": {"storageClassName": "fast"},
        "status": {"phase": "Pending"},
    }
    full = node() | {
        "status": node().get("status", {}) | {"allocatable": {"cpu": "1"}, "conditions": conditions(Ready="True")}
    }
    return sets, objects | {
        PODS: pods,
        CORE_EVENTS: [*events, namespace_of(told, "prod")],
        PERSISTENT_VOLUME_CLAIMS: [claim],
        NODES: [full],
    }


@pytest.mark.parametrize(
    "forbidden", [(), (CORE_EVENTS, NODES), (STATEFULSETS,)], ids=["all", "few", "no statefulsets"]
)
@pytest.mark.parametrize("namespace", ["prod", ""])
def test_shared_lists_give_the_same_diagnoses(namespace: str, forbidden: tuple[Resource, ...]) -> None:
    sets, objects = situation()
    chosen = [one for one in sets if namespace in ("", meta.namespace(one))]
    server = Server(objects, frozenset(forbidden))
    members = {meta.key(one): [pod for pod in objects[PODS] if mine(pod, one)] for one in chosen}
    views = [view(one, members[meta.key(one)]) for one in chosen]
    together = run(setdiagnoses.survey(Lists(Client(server)), views, namespace, Commands(), FakeClock(NOW)))
    shared = len(server.asked)
    alone = [
        run(diagnosisinput.diagnose_one(Lists(Client(server)), one, Selection(one.name), Commands(), FakeClock(NOW)))
        for one in views
    ]
    assert together == alone
    assert len({one.code for one in together}) > 1
    again = [path for path, times in Counter(server.asked[:shared]).items() if times > 1]
    twice = ("controllerrevisions", "events")  # recreation records and evictions are also listed separately
    assert [path for path in again if not path.endswith(twice)] == [], "a list was read twice"
    assert all(server.asked[:shared].count(path) == 2 for path in again)


def mine(pod: JSONObject, obj: JSONObject) -> bool:
    return meta.namespace(pod) == meta.namespace(obj) and meta.labels(pod).get(labels.NAME) == meta.name(obj)


@pytest.mark.slow
def test_five_hundred_stuck_sets_need_a_dozen_requests() -> None:
    sets = [named(lws(), f"web-{index}") for index in range(500)]
    events = [
        event("StatefulSet", f"web-{index}", "FailedCreate", REFUSED.format(f"web-{index}")) for index in range(500)
    ]
    server = Server(
        {
            CORE_EVENTS: [namespace_of(one, "prod") for one in events],
            STATEFULSETS: [],
            CONTROLLER_REVISIONS: [],
            PODS: [],
        }
    )
    views = [view(one, []) for one in sets]
    found = run(setdiagnoses.survey(Lists(Client(server)), views, "prod", Commands(), FakeClock(NOW)))
    assert {(one.code, one.verdict) for one in found} == {("LWS-E026", Verdict.STUCK)}
    assert [one.sentence.split("pod ")[1].split("-0 ")[0] for one in found] == [f"web-{index}" for index in range(500)]
    assert len(server.asked) <= 12


class Endless(Lists):
    """The lists of a cluster with more nodes than the limit."""

    async def list_bounded(self, query: Query) -> list[JSONObject]:
        raise TooManyError(query.resource.group_resource)


@pytest.mark.parametrize(("sets", "code"), [(1, "LWS-E051"), (11, "LWS-E091")], ids=["few", "many"])
def test_nodes_of_few_sets_are_read_by_name_in_a_large_cluster(sets: int, code: str) -> None:
    server = Server({NODES: [node(conditions=conditions(Ready="False"))], SERVICES: [], CORE_EVENTS: []})
    views = [
        view(named(lws(), f"web-{at}"), [named(placed(0, rank), f"web-{at}") for rank in (0, 1)]) for at in range(sets)
    ]
    found = run(setdiagnoses.survey(Endless(Client(server)), views, "prod", Commands(), FakeClock(NOW)))
    assert {one.code for one in found} == {code}
