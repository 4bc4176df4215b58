"""Implements the EndpointSlice controller, which lists the pods of each Service.

API clients such as `kubectl get endpointslices` read the lists.

In this cluster, slices are not used to resolve names, so a service is planned at most once a second. Slices are named
`<service>-<number>` and contain up to 100 endpoints each, as upstream. An endpoint stays in its slice, so that an added
or deleted pod changes only one slice. Endpoints objects are not created.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from msgspec import Struct, field

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import ENDPOINT_SLICES
from kuberuntime.objects.selectors import selects
from kuberuntime.plan import Action, Actions, Create, Delete, Plan, guarded_patch

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
HEADLESS: Final = "service.kubernetes.io/headless"

PER_SLICE: Final = 100
INTERVAL: Final = 1.0
"""The minimum number of seconds between two plans of one Service, so that starting many pods needs few plans."""

SHARE: Final = 20
"""The pause after a plan, as a multiple of its duration, because plans take longer on a busy CPU."""

SHORTEST: Final = 0.01
"""The minimum wait in seconds. A shorter wait can be lost in floating-point sums of virtual time."""

BY_NAMESPACE: Final = "namespace"
BY_SERVICE: Final = "service"


def namespace_index(obj: JSONObject) -> Iterable[str]:
    """Index an object by its namespace."""
    return [meta.namespace(obj)]


def service_index(endpoint_slice: JSONObject) -> Iterable[str]:
    """Index a slice of this controller by its Service."""
    labels = meta.labels(endpoint_slice)
    if labels.get(MANAGED_BY) != MANAGER or SERVICE_NAME not in labels:
        return []
    return [f"{meta.namespace(endpoint_slice)}/{labels[SERVICE_NAME]}"]


class EndpointSliceController(Struct, frozen=True, kw_only=True):
    """Maintains the slices of Services with selectors. Services, pods and slices have the indexes above."""

    services: Informer
    pods: Informer
    slices: Informer
    clock: Clock
    _due: OrderedDict[UID, float] = field(default_factory=OrderedDict)
    """The earliest time of the next plan for a Service by UID, in ascending order."""

    def watches(self) -> tuple[Watch, ...]:
        """Return the watches, with the Services that a change affects."""
        return (
            Watch(self.services, lambda change: [meta.key(change.object)]),
            Watch(self.pods, self._services_of_pod),
            Watch(self.slices, _service_of_slice),
        )

    async def plan(self, key: ObjectKey) -> Plan:
        """Write the slices of a Service, at most every `INTERVAL`. Slices of deleted Services are collected."""
        service = self.services.store.get(key)
        if service is None or meta.is_deleting(service) or not meta.spec(service).get("selector"):
            return Plan()
        now = self.clock.monotonic()
        wait = self._due.get(meta.uid(service), now) - now
        if wait > 0:
            return Plan(requeue_after=max(wait, SHORTEST))
        actions = slice_updates(service, self._pods_of(service), self.slices.store.by_index(BY_SERVICE, str(key)))
        self._due.pop(meta.uid(service), None)
        self._due[meta.uid(service)] = now + max(SHARE * (self.clock.monotonic() - now), INTERVAL)
        while next(iter(self._due.values())) <= now:
            self._due.popitem(last=False)
        return Plan(actions)

    def _pods_of(self, service: JSONObject) -> list[JSONObject]:
        pods = self.pods.store.by_index(BY_NAMESPACE, meta.namespace(service))
        return sorted((pod for pod in pods if selects(service, pod)), key=meta.name)

    def _services_of_pod(self, change: Change) -> Iterator[ObjectKey]:
        for service in self.services.store.by_index(BY_NAMESPACE, meta.namespace(change.object)):
            if _endpoint_in(service, change.old) != _endpoint_in(service, change.new):
                yield meta.key(service)


def slice_updates(service: JSONObject, pods: Sequence[JSONObject], existing: Sequence[JSONObject]) -> Actions:
    """Return the writes that update the existing slices of the Service."""
    live = {meta.name(endpoint_slice): endpoint_slice for endpoint_slice in existing}
    desired = {meta.name(endpoint_slice): endpoint_slice for endpoint_slice in build(service, pods, existing)}
    actions: list[Action] = [
        Create(resource=ENDPOINT_SLICES, object=endpoint_slice)
        for name, endpoint_slice in desired.items()
        if name not in live
    ]
    for name, endpoint_slice in live.items():
        if name not in desired:
            key, uid = meta.key(endpoint_slice), meta.uid(endpoint_slice)
            actions.append(Delete(resource=ENDPOINT_SLICES, key=key, propagation="Background", uid=uid))
        elif any((endpoint_slice.get(part) or []) != desired[name][part] for part in ("endpoints", "ports")):
            change = {part: desired[name][part] for part in ("endpoints", "ports")}
            actions.append(guarded_patch(ENDPOINT_SLICES, endpoint_slice, change))
    return tuple(actions)


def build(service: JSONObject, pods: Sequence[JSONObject], existing: Sequence[JSONObject] = ()) -> list[JSONObject]:
    """Build the slices of a Service, which has at least one slice."""
    endpoints = [endpoint for pod in pods if (endpoint := _endpoint(service, pod)) is not None]
    ports = _ports(service, pods)
    labels = meta.labels(service) | {SERVICE_NAME: meta.name(service), MANAGED_BY: MANAGER}
    if meta.spec(service).get("clusterIP") == "None":
        labels |= {HEADLESS: ""}
    return [
        {
            "apiVersion": ENDPOINT_SLICES.api_version,
            "kind": ENDPOINT_SLICES.kind,
            "metadata": {
                "name": name,
                "namespace": meta.namespace(service),
                "labels": labels,
                "ownerReferences": [meta.controller_reference(service)],
            },
            "addressType": "IPv4",
            "endpoints": members,
            "ports": ports,
        }
        for name, members in _assign_slices(meta.name(service), endpoints, existing).items()
    ]


def _assign_slices(
    service: str, endpoints: Sequence[JSONObject], existing: Sequence[JSONObject]
) -> dict[str, list[JSONObject]]:
    """Return the endpoints by slice name. Existing endpoints remain in their slice, and others use free slots."""
    new = {endpoint["targetRef"]["uid"]: endpoint for endpoint in endpoints}
    slices: dict[str, list[JSONObject]] = {}
    for endpoint_slice in sorted(existing, key=meta.name):
        uids = [(member.get("targetRef") or {}).get("uid") for member in endpoint_slice.get("endpoints") or []]
        if kept := [new.pop(uid) for uid in uids if uid in new]:
            slices[meta.name(endpoint_slice)] = kept
    names = (f"{service}-{number}" for number in count())
    rest = list(new.values())
    for members in slices.values():
        free = max(PER_SLICE - len(members), 0)
        members.extend(rest[:free])
        rest = rest[free:]
    while rest or not slices:
        name = next(name for name in names if name not in slices)
        slices[name], rest = rest[:PER_SLICE], rest[PER_SLICE:]
    return slices


def _endpoint_in(service: JSONObject, pod: JSONObject | None) -> JSONObject | None:
    return _endpoint(service, pod) if pod is not None and selects(service, pod) else None


def _endpoint(service: JSONObject, pod: JSONObject) -> JSONObject | None:
    status, spec = meta.status(pod), meta.spec(pod)
    if not status.get("podIP") or podstate.has_ended(pod):
        return None
    always, terminating = bool(meta.spec(service).get("publishNotReadyAddresses")), meta.is_deleting(pod)
    serving = always or meta.is_condition_true(pod, "Ready")
    endpoint: JSONObject = {
        "addresses": [status["podIP"]],
        "conditions": {
            "ready": always or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {"kind": "Pod", "namespace": meta.namespace(pod), "name": meta.name(pod), "uid": meta.uid(pod)},
    }
    if spec.get("nodeName"):
        endpoint["nodeName"] = spec["nodeName"]
    if spec.get("hostname") and spec.get("subdomain") == meta.name(service):
        endpoint["hostname"] = spec["hostname"]
    return endpoint


def _ports(service: JSONObject, pods: Sequence[JSONObject]) -> list[JSONObject]:
    return [
        {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
        for port in meta.spec(service).get("ports") or []
        if (number := _target(port, pods)) is not None
    ]


def _target(port: JSONObject, pods: Sequence[JSONObject]) -> int | None:
    """Return the target port number of a Service port. A name selects the port of the first pod with that name."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    containers = (container for pod in pods for container in meta.spec(pod).get("containers") or [])
    ports = (port for container in containers for port in container.get("ports") or [] if port.get("name") == target)
    return next((int(port["containerPort"]) for port in ports), None)


def _service_of_slice(change: Change) -> list[ObjectKey]:
    return [ObjectKey(*key.split("/")) for key in service_index(change.object)]
