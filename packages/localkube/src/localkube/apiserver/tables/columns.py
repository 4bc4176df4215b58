"""Defines the columns of `kubectl get` for the built-in kinds."""

from collections.abc import Callable, Iterable
from datetime import datetime

from msgspec import Struct

from kuberuntime.objects import meta, podstate, resources, selectors
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from localkube.apiserver.model.kind import Column
from localkube.apiserver.tables import table
from localkube.apiserver.tables.cells import AGE, NAME, Cell, column, count_cell, join_items, path_cell
from localkube.apiserver.tables.table import NONE

SHORT_ACCESS = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip
ROLE_PREFIX = "node-role.kubernetes.io/"
SHOWN_ENDPOINTS = 3
SHOWN_METRICS = 2


class TableColumns(Struct, frozen=True):
    """The columns of a kind, and the function that fills a row."""

    columns: tuple[Column, ...]
    cells: Callable[[JSONObject, datetime], list[object]]


def table_columns(resource: Resource) -> TableColumns:
    """Return the columns of a resource: the name, specific columns if there are any, and the age."""
    pairs = COLUMNS.get(resource, (NAME, AGE))
    fillers = tuple(cell for _, cell in pairs)
    return TableColumns(tuple(column for column, _ in pairs), lambda obj, now: [cell(obj, now) for cell in fillers])


def _pod_ready(pod: JSONObject, _now: datetime) -> str:
    ready, total = podstate.ready_containers(pod)
    return f"{ready}/{total}"


def _pod_restarts(pod: JSONObject, now: datetime) -> str:
    restarts = podstate.restart_count(pod)
    ends = [
        ((entry.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        for entry in podstate.container_statuses(pod)
    ]
    last = max((end for end in ends if end), default=None)
    return f"{restarts} ({table.age(last, now)} ago)" if restarts and last else str(restarts)


def _readiness_gates(pod: JSONObject, _now: datetime) -> str:
    gates = [gate["conditionType"] for gate in meta.spec(pod).get("readinessGates") or ()]
    return f"{sum(meta.is_condition_true(pod, gate) for gate in gates)}/{len(gates)}" if gates else NONE


def _replicas_ready(obj: JSONObject, _now: datetime) -> str:
    return f"{meta.status(obj).get('readyReplicas', 0)}/{meta.spec(obj).get('replicas', 0)}"


def _template(field: str) -> Cell:
    return lambda obj, _: join_items(
        container.get(field, "") for container in obj["spec"]["template"]["spec"].get("containers") or ()
    )


def _scale_target(autoscaler: JSONObject, _now: datetime) -> str:
    target = meta.spec(autoscaler).get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(autoscaler: JSONObject, _now: datetime) -> str:
    """Return the value and target of each metric, such as `cpu: 35%/80%`."""
    now = meta.status(autoscaler).get("currentMetrics") or []
    metrics = meta.spec(autoscaler).get("metrics") or []
    texts = [_target(metric, now[index] if index < len(now) else {}) for index, metric in enumerate(metrics)]
    more = f" + {len(texts) - SHOWN_METRICS} more..." if len(texts) > SHOWN_METRICS else ""
    return join_items(texts[:SHOWN_METRICS]).replace(",", ", ") + more


def _target(metric: JSONObject, current: JSONObject) -> str:
    field = f"{metric['type'][:1].lower()}{metric['type'][1:]}"
    target = (metric.get(field) or {}).get("target") or {}
    value = (current.get(field) or {}).get("current") or {}
    name = (metric.get(field) or {}).get("name", "")
    prefix = f"{name}: " if name else ""
    if target.get("averageUtilization") is not None:
        utilization = value.get("averageUtilization")
        return f"{prefix}{table.UNKNOWN if utilization is None else f'{utilization}%'}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        suffix = "" if metric["type"] in {"Pods", "Resource", "ContainerResource"} else " (avg)"
        return f"{prefix}{value.get('averageValue') or table.UNKNOWN}/{target['averageValue']}{suffix}"
    return f"{prefix}{value.get('value') or table.UNKNOWN}/{target.get('value')}"


def _external_address(service: JSONObject, _now: datetime) -> str:
    spec = meta.spec(service)
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName"))
    return join_items(spec.get("externalIPs") or (), "<pending>" if spec.get("type") == "LoadBalancer" else NONE)


def _endpoints(endpoints: JSONObject, _now: datetime) -> str:
    targets = [
        f"{address['ip']}:{port['port']}"
        for subset in endpoints.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    ] or [address["ip"] for subset in endpoints.get("subsets") or () for address in subset.get("addresses") or ()]
    return _shorten_endpoints(targets)


def _shorten_endpoints(endpoints: list[str]) -> str:
    more = len(endpoints) - SHOWN_ENDPOINTS
    return f"{join_items(endpoints[:SHOWN_ENDPOINTS])} + {more} more..." if more > 0 else join_items(endpoints)


def _slice_endpoints(endpoint_slice: JSONObject, _now: datetime) -> str:
    addresses = [address for endpoint in endpoint_slice.get("endpoints") or () for address in endpoint["addresses"]]
    return _shorten_endpoints(addresses) if addresses else "<unset>"


def _node_status(node: JSONObject, _now: datetime) -> str:
    words = ["Ready" if meta.is_condition_true(node, "Ready") else "NotReady"]
    if meta.find_condition(node, "Ready") is None:
        words = ["Unknown"]
    return join_items([*words, *(["SchedulingDisabled"] if meta.spec(node).get("unschedulable") else [])])


def _node_address(kind: str) -> Cell:
    def cell(node: JSONObject, _now: datetime) -> str:
        addresses = meta.status(node).get("addresses") or ()
        return next((entry["address"] for entry in addresses if entry["type"] == kind), NONE)

    return cell


def _event_series(event: JSONObject, field: str) -> object:
    return (event.get("series") or {}).get(field)


def _last_seen(event: JSONObject, now: datetime) -> str:
    last = (
        _event_series(event, "lastObservedTime") or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    )
    return table.age(str(last or event.get("eventTime") or event.get("firstTimestamp") or ""), now)


def _first_seen(event: JSONObject, now: datetime) -> str:
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    return table.age(first, now)


def _regarding_object(event: JSONObject) -> JSONObject:
    return event.get("involvedObject") or event.get("regarding") or {}


def _event_object(event: JSONObject, _now: datetime) -> str:
    return f"{_regarding_object(event).get('kind', '').lower()}/{_regarding_object(event).get('name', '')}"


def _event_source(event: JSONObject, _now: datetime) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def _short_access_modes(modes: Iterable[str] | None) -> str:
    return join_items((SHORT_ACCESS.get(mode, mode) for mode in modes or ()), "")


def _claim_capacity(claim: JSONObject, _now: datetime) -> str:
    if not meta.spec(claim).get("volumeName"):
        return ""
    return str((meta.status(claim).get("capacity") or {}).get("storage", "0"))


def _claim(volume: JSONObject, _now: datetime) -> str:
    claim = meta.spec(volume).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _controller(revision: JSONObject, _now: datetime) -> str:
    owner = meta.controller_of(revision)
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"


WEBHOOKS = (NAME, column("Webhooks", count_cell("webhooks"), kind="integer"), AGE)
EVENTS = (
    column("Last Seen", _last_seen),
    column("Type", path_cell("type", "")),
    column("Reason", path_cell("reason", "")),
    column("Object", _event_object),
    column("Subobject", lambda event, _: str(_regarding_object(event).get("fieldPath", "")), wide=True),
    column("Source", _event_source, wide=True),
    column("Message", lambda event, _: str(event.get("message") or event.get("note") or "").strip()),
    column("First Seen", _first_seen, wide=True),
    column(
        "Count",
        lambda event, _: _event_series(event, "count") or event.get("count") or event.get("deprecatedCount") or 1,
        wide=True,
    ),
    (Column("Name", "string", "Name of the event.", priority=1, format="name"), NAME[1]),
)

_OF_TEMPLATE = (
    column("Containers", _template("name"), wide=True),
    column("Images", _template("image"), wide=True),
    column("Selector", lambda obj, _: str(selectors.from_object(meta.spec(obj).get("selector"))), wide=True),
)

COLUMNS: dict[Resource, tuple[tuple[Column, Cell], ...]] = {
    resources.PODS: (
        NAME,
        column("Ready", _pod_ready),
        column("Status", lambda pod, _: podstate.state(pod)),
        column("Restarts", _pod_restarts),
        AGE,
        column("IP", path_cell("status.podIP"), wide=True),
        column("Node", path_cell("spec.nodeName"), wide=True),
        column("Nominated Node", path_cell("status.nominatedNodeName"), wide=True),
        column("Readiness Gates", _readiness_gates, wide=True),
    ),
    resources.STATEFULSETS: (
        NAME,
        column("Ready", _replicas_ready),
        AGE,
        column("Containers", _template("name"), wide=True),
        column("Images", _template("image"), wide=True),
    ),
    resources.DEPLOYMENTS: (
        NAME,
        column("Ready", _replicas_ready),
        column("Up-to-date", path_cell("status.updatedReplicas", 0)),
        column("Available", path_cell("status.availableReplicas", 0)),
        AGE,
        *_OF_TEMPLATE,
    ),
    resources.HORIZONTAL_POD_AUTOSCALERS: (
        NAME,
        column("Reference", _scale_target),
        column("Targets", _targets),
        column("MinPods", lambda obj, _: str(meta.spec(obj).get("minReplicas", "<unset>"))),
        column("MaxPods", path_cell("spec.maxReplicas", 0)),
        column("Replicas", path_cell("status.currentReplicas", 0)),
        AGE,
    ),
    resources.REPLICA_SETS: (
        NAME,
        column("Desired", path_cell("spec.replicas", 0)),
        column("Current", path_cell("status.replicas", 0)),
        column("Ready", path_cell("status.readyReplicas", 0)),
        AGE,
        *_OF_TEMPLATE,
    ),
    resources.CONTROLLER_REVISIONS: (
        NAME,
        column("Controller", _controller),
        column("Revision", path_cell("revision", 0)),
        AGE,
    ),
    resources.SERVICES: (
        NAME,
        column("Type", path_cell("spec.type")),
        column("Cluster-IP", path_cell("spec.clusterIP")),
        column("External-IP", _external_address),
        column(
            "Port(s)",
            lambda obj, _: join_items(
                f"{port['port']}/{port['protocol']}" for port in meta.spec(obj).get("ports") or ()
            ),
        ),
        AGE,
        column(
            "Selector", lambda obj, _: selectors.format_labels(meta.spec(obj).get("selector") or {}) or NONE, wide=True
        ),
    ),
    resources.ENDPOINTS: (NAME, column("Endpoints", _endpoints), AGE),
    resources.ENDPOINT_SLICES: (
        NAME,
        column("AddressType", path_cell("addressType")),
        column(
            "Ports", lambda obj, _: join_items((port.get("port", "*") for port in obj.get("ports") or ()), "<unset>")
        ),
        column("Endpoints", _slice_endpoints),
        AGE,
    ),
    resources.CONFIG_MAPS: (NAME, column("Data", count_cell("data", "binaryData")), AGE),
    resources.SECRETS: (NAME, column("Type", path_cell("type")), column("Data", count_cell("data")), AGE),
    resources.SERVICE_ACCOUNTS: (NAME, column("Secrets", count_cell("secrets")), AGE),
    resources.NAMESPACES: (NAME, column("Status", path_cell("status.phase")), AGE),
    resources.NODES: (
        NAME,
        column("Status", _node_status),
        column(
            "Roles",
            lambda node, _: join_items(
                sorted(key.removeprefix(ROLE_PREFIX) for key in meta.labels(node) if key.startswith(ROLE_PREFIX))
            ),
        ),
        AGE,
        column("Version", path_cell("status.nodeInfo.kubeletVersion", "")),
        column("Internal-IP", _node_address("InternalIP"), wide=True),
        column("External-IP", _node_address("ExternalIP"), wide=True),
        column("OS-Image", path_cell("status.nodeInfo.osImage", table.UNKNOWN), wide=True),
        column("Kernel-Version", path_cell("status.nodeInfo.kernelVersion", table.UNKNOWN), wide=True),
        column("Container-Runtime", path_cell("status.nodeInfo.containerRuntimeVersion", table.UNKNOWN), wide=True),
    ),
    resources.CORE_EVENTS: EVENTS,
    resources.EVENTS: EVENTS,
    resources.PERSISTENT_VOLUME_CLAIMS: (
        NAME,
        column("Status", path_cell("status.phase", "")),
        column("Volume", path_cell("spec.volumeName", "")),
        column("Capacity", _claim_capacity),
        column(
            "Access Modes",
            lambda claim, _: (
                _short_access_modes(meta.status(claim).get("accessModes")) if meta.spec(claim).get("volumeName") else ""
            ),
        ),
        column("StorageClass", path_cell("spec.storageClassName", "")),
        column("VolumeAttributesClass", path_cell("spec.volumeAttributesClassName", "<unset>")),
        AGE,
        column("VolumeMode", path_cell("spec.volumeMode", "<unset>"), wide=True),
    ),
    resources.PERSISTENT_VOLUMES: (
        NAME,
        column("Capacity", path_cell("spec.capacity.storage", "")),
        column("Access Modes", lambda volume, _: _short_access_modes(meta.spec(volume).get("accessModes"))),
        column("Reclaim Policy", path_cell("spec.persistentVolumeReclaimPolicy", "")),
        column("Status", path_cell("status.phase", "")),
        column("Claim", _claim),
        column("StorageClass", path_cell("spec.storageClassName", "")),
        column("VolumeAttributesClass", path_cell("spec.volumeAttributesClassName", "<unset>")),
        column("Reason", path_cell("status.reason", "")),
        AGE,
        column("VolumeMode", path_cell("spec.volumeMode", "<unset>"), wide=True),
    ),
    resources.POD_DISRUPTION_BUDGETS: (
        NAME,
        column("Min Available", path_cell("spec.minAvailable", "N/A")),
        column("Max Unavailable", path_cell("spec.maxUnavailable", "N/A")),
        column("Allowed Disruptions", path_cell("status.disruptionsAllowed", 0), kind="integer"),
        AGE,
    ),
    resources.LEASES: (NAME, column("Holder", path_cell("spec.holderIdentity", "")), AGE),
    resources.PRIORITY_CLASSES: (
        NAME,
        column("Value", path_cell("value", 0), kind="integer"),
        column("Global-Default", path_cell("globalDefault", default=False), kind="boolean"),
        AGE,
        column("PreemptionPolicy", path_cell("preemptionPolicy", "")),
    ),
    resources.STORAGE_CLASSES: (
        NAME,
        column("Provisioner", path_cell("provisioner", "")),
        column("ReclaimPolicy", path_cell("reclaimPolicy", "")),
        column("VolumeBindingMode", path_cell("volumeBindingMode", "")),
        column("AllowVolumeExpansion", path_cell("allowVolumeExpansion", default=False)),
        AGE,
    ),
    resources.CUSTOM_RESOURCE_DEFINITIONS: (
        NAME,
        (Column("Created At", "date", "Time when the CRD was created."), path_cell("metadata.creationTimestamp", "")),
    ),
    resources.MUTATING_WEBHOOK_CONFIGURATIONS: WEBHOOKS,
    resources.VALIDATING_WEBHOOK_CONFIGURATIONS: WEBHOOKS,
}
