"""Builds the operator's observations."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from testkit.fakes import failure
from testkit.transports import RequestTransport

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS
from kuberuntime.plan import Action, Apply, Delete, Finally, Patch, Plan, Put, PutStatus
from leaderworkerset.install import certmanager
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, SERVICE_MONITORS
from leaderworkerset.install.operatornames import OPERATORS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator import operand, operatorspec, sync
from leaderworkerset.operator.driftcorrection import Live
from leaderworkerset.operator.operand import ClusterState, OperatorPlace
from leaderworkerset.operator.operatorcontroller import Comparison
from leaderworkerset.operator.sync import ObservedOperand

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 4, 0, 0, tzinfo=UTC)
PLACE = OperatorPlace(
    namespace="operators", image="registry.example/lws@sha256:0123", version="1.2.3", declared=MANAGED
)
ALL = frozenset(kind.group_resource for kind in (ISSUERS, CERTIFICATES, SERVICE_MONITORS))
ISSUED: Mapping[str, JSONObject] = {
    name: {"data": {"tls.crt": f"{name} certificate", "tls.key": "key"}}
    for name in (certmanager.SERVING_SECRET, certmanager.METRICS_SECRET)
}


def cluster(annotations: Mapping[str, str] | None = None, status: JSONObject | None = None, **spec: Any) -> JSONObject:
    """Return the `cluster` object."""
    return {
        "apiVersion": OPERATORS.api_version,
        "kind": OPERATORS.kind,
        "metadata": {
            "name": "cluster",
            "uid": "u-1",
            "generation": 3,
            "resourceVersion": "7",
            "annotations": dict(annotations or {}),
        },
        "spec": spec,
        "status": status or {},
    }


def observed(
    found: JSONObject | None,
    live: Live | None = None,
    secrets: Mapping[str, JSONObject] = ISSUED,
    served: Iterable[str] = ALL,
) -> ObservedOperand:
    return ObservedOperand(cluster=found, live=live or {}, secrets=secrets, served=frozenset(served))


def plan(state: ObservedOperand, place: OperatorPlace = PLACE, now: datetime = NOW) -> Plan:
    """Return the plan for an API server that stores each object unchanged, without defaults."""
    target = sync.decide(state, place)
    differences = asyncio.run(Comparison(Client(Echo())).find_differences(target.objects if target else (), state.live))
    return sync.reconcile(state, target, differences, place, now)


class Echo(RequestTransport):
    """A transport to a server that has no other objects, and responds to each write as if it were stored."""

    async def request(self, request: Request) -> Response:
        if request.method == "GET":
            return failure(404, "NotFound")
        body = msgspec.json.decode(request.body)
        own = {name: value for name, value in body["metadata"].items() if value not in ([], {})}
        return Response(200, {}, msgspec.json.encode(body | {"metadata": own}))


def installed(found: JSONObject, secrets: Mapping[str, JSONObject] = ISSUED) -> Live:
    """Return each requested object as an API server stores it. All managers are running."""
    wanted = operatorspec.read(found)
    hashes = {name: operand.certificate_hash(secret) for name, secret in secrets.items()}
    if wanted.certificates == "internal":
        hashes = {}
    objects = operand.build(PLACE, wanted, found, ClusterState(hashes=hashes))
    return {(kind, meta.key(obj)): running(obj) if kind == DEPLOYMENTS else _stored(obj) for kind, obj in objects}


def running(deployment: JSONObject, available: int = 2) -> JSONObject:
    status = {"observedGeneration": 5, "updatedReplicas": available, "availableReplicas": available}
    own = meta.metadata(deployment) | {"generation": 5, "uid": "u-2"}
    return deployment | {"metadata": own, "status": status}


def _stored(obj: JSONObject) -> JSONObject:
    return obj | {"metadata": meta.metadata(obj) | {"uid": f"u-{obj['kind']}-{meta.name(obj)}"}}


def actions(found: Plan) -> list[Action]:
    """Return the actions, including the actions inside `Finally`."""
    return [inner for one in found.actions for inner in (one.actions if isinstance(one, Finally) else (one,))]


def applied(found: Plan) -> list[str]:
    return [f"{one.resource.kind}/{meta.name(one.object)}" for one in actions(found) if isinstance(one, Apply | Put)]


def deleted(found: Plan) -> list[str]:
    return [f"{one.resource.kind}/{one.key.name}" for one in actions(found) if isinstance(one, Delete)]


def status_of(found: Plan) -> JSONObject:
    (written,) = [one for one in actions(found) if isinstance(one, PutStatus)]
    return meta.status(written.object)


def failure_of(found: Plan) -> Patch:
    (guarded,) = [one for one in found.actions if isinstance(one, Finally)]
    (report,) = guarded.on_failure
    return report


def conditions(status: JSONObject) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
