"""Builds situations that `lws explain` observes: a LeaderWorkerSet `web` with one group, and a problem."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import REVISION, ROLE, SET_NAME, SLICE
from leaderworkerset.api.recreationrecord import RecreationState
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.disaggregatedset import set_view
from lwsctl.model.events.warningevents import Evidence, explain_views
from lwsctl.model.leaderworkerset import view
from lwsctl.observation.setdiagnoses import bare

NOW: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
NAMESPACE: Final = "prod"
KEY: Final = "5b7f"
"""The revision of the groups."""

PROGRESSING: Final = {
    "type": "Progressing",
    "status": "True",
    "reason": "RolloutInProgress",
    "message": "At least one desired group of a role is not ready, or does not have the latest revision",
}
"""The condition of an incomplete DisaggregatedSet."""


def ago(seconds: float) -> str:
    """Return the time `seconds` ago."""
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def lws(replicas: int = 1, size: int = 2, *, status: Mapping[str, Any] | None = None, **fields: Any) -> JSONObject:
    """Return the LeaderWorkerSet.

    `metadata` in `fields` extends its metadata, and the other fields belong to the spec.
    """
    metadata = {"name": "web", "namespace": NAMESPACE, "uid": "set", "generation": 1, "creationTimestamp": ago(600)}
    template = {"workerTemplate": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}
    template |= fields.pop("template", {})
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata | fields.pop("metadata", {}),
        "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": size} | template, **fields},
        "status": {"observedGeneration": 1, **(status or {})},
    }


def conditions(**statuses: str) -> list[JSONObject]:
    """Return conditions by type."""
    return [{"type": kind, "status": status} for kind, status in statuses.items()]


def pod(group: int = 0, rank: int = 0, *, made: float = 300, **fields: Any) -> JSONObject:
    """Return a pod. `metadata`, `spec` and `status` extend the default fields."""
    name = f"web-{group}" if rank == 0 else f"web-{group}-{rank}"
    own = {
        labels.NAME: "web",
        labels.GROUP_INDEX: str(group),
        labels.WORKER_INDEX: str(rank),
        labels.GROUP_KEY: f"key-{group}",
        labels.TEMPLATE_REVISION_HASH: KEY,
    }
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"{name}-uid", "creationTimestamp": ago(made)}
    given = fields.get("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | given | {"labels": own | given.get("labels", {})},
        "spec": {"containers": [{"name": "main", "image": "vllm:1"}]} | fields.get("spec", {}),
        "status": {"phase": "Pending"} | fields.get("status", {}),
    }


def placed(group: int = 0, rank: int = 0, *, node: str = "node-0", ready: bool = False, **fields: Any) -> JSONObject:
    """Return a pod on a node."""
    told = {"phase": "Running", "conditions": conditions(Ready="True" if ready else "False")}
    spec = {"nodeName": node} | fields.pop("spec", {})
    return pod(group, rank, spec=spec, status=told | fields.pop("status", {}), **fields)


def ready(group: int = 0, rank: int = 0, **fields: Any) -> JSONObject:
    """Return a ready pod."""
    running = {"name": "main", "ready": True, "state": {"running": {"startedAt": ago(200)}}}
    return placed(group, rank, ready=True, status={"containerStatuses": [running]}, **fields)


def container(name: str = "main", restarts: int = 0, last: JSONObject | None = None, **state: Any) -> JSONObject:
    """Return the status of a container."""
    found: JSONObject = {"name": name, "restartCount": restarts, "state": state}
    return found | ({"lastState": {"terminated": last}} if last else {})


def ended(code: int, seconds: float = 20, reason: str = "Error", message: str = "") -> JSONObject:
    """Return the terminated state of a container that exited `seconds` ago."""
    return {"exitCode": code, "reason": reason, "finishedAt": ago(seconds), "message": message}


def normal(reason: str, message: str, *, seconds: float = 40, component: str = "", name: str = "web-0") -> JSONObject:
    """Return a Normal event from a component for a pod."""
    return event("Pod", name, reason, message, seconds=seconds) | {"type": "Normal", "source": {"component": component}}


def event(kind: str, name: str, reason: str, message: str, *, uid: str = "", seconds: float = 5) -> JSONObject:
    """Return a Warning event."""
    about = {"kind": kind, "name": name, "namespace": NAMESPACE, "uid": uid or f"{name}-uid"}
    return {
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": ago(seconds),
        "involvedObject": about,
        "metadata": {"namespace": NAMESPACE},
    }


def node(name: str = "node-0", **fields: Any) -> JSONObject:
    """Return a ready node."""
    return {
        "metadata": {"name": name, "labels": fields.get("labels", {})},
        "spec": {"taints": fields.get("taints", [])},
        "status": {
            "allocatable": fields.get("allocatable", {}),
            "conditions": fields.get("conditions", conditions(Ready="True")),
        },
    }


def observed(
    pods: Iterable[JSONObject] = (),
    objects: Mapping[Resource, Sequence[JSONObject]] | None = None,
    *,
    of: JSONObject | None = None,
    running: Sequence[JSONObject] | None = None,
    leader_deployment: JSONObject | None = None,
) -> Observed:
    """Return the observation in the form that `lws get` reads, with the reasons in events and records."""
    found = dict(objects or {})
    evidence = Evidence(events=found.get(CORE_EVENTS, ()), records=found.get(CONTROLLER_REVISIONS, ()))
    (shown,) = explain_views([view(lws() if of is None else of, pods)], evidence, NOW)
    return Observed(view=shown, now=NOW, objects=found, running_pods=running, leader_deployment=leader_deployment)


def keyed(number: int = 0, **fields: Any) -> JSONObject:
    """Return the ready leader of a one-pod group with a random key."""
    key = f"{number}f3c9a1e" * 5
    name = f"web-7d9f8b6c4-{number}x2kk"
    return ready(number, metadata={"name": name, "labels": {labels.GROUP_INDEX: key}}, **fields)


def of_keys(
    pods: Iterable[JSONObject], told: Mapping[str, Any], *, key: str = KEY, replicas: int = 2, updating: bool = False
) -> Observed:
    """Return one-pod groups with random keys.

    `told` is the status of their Deployment, which has the revision `key`.
    """
    deployment = {
        "metadata": {
            "name": "web",
            "generation": 2,
            "creationTimestamp": ago(600),
            "labels": {labels.TEMPLATE_REVISION_HASH: key},
        },
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": 2, **told},
    }
    status = {"conditions": conditions(UpdateInProgress="True")} if updating else None
    found = [*pods]
    of = lws(replicas, 1, status=status, groupIdentity="Hash")
    return observed(found, of=of, leader_deployment=deployment)


def recreated(
    pods: Iterable[JSONObject],
    *,
    due: float = -30,
    leader: str = "another",
    state: str = RecreationState.RECREATED,
    failure: str = "deleted: NodeLost",
    **given: Any,
) -> Observed:
    """Return group 0 with its third consecutive recreation, which is due in `due` seconds.

    `given` is passed to `observed`.
    """
    record: JSONObject = {
        "metadata": {
            "name": "web-0-recreations",
            "namespace": NAMESPACE,
            "labels": {labels.NAME: "web", labels.GROUP_INDEX: "0"},
            "annotations": {
                labels.RECREATIONS: "3",
                labels.RECREATED_LEADER: leader,
                labels.TEMPLATE_REVISION_HASH: KEY,
                labels.RECREATE_AFTER: ago(-due).replace("Z", "+00:00"),
                labels.RECREATION_STATE: state,
                labels.FAILED_POD: "web-0-1",
                labels.FAILED_POD_UID: "former",
                labels.FAILURE: failure,
            },
        }
    }
    revision = {"metadata": {"labels": {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: KEY}}}
    objects = {CONTROLLER_REVISIONS: [revision, record]} | given.pop("objects", {})
    return observed(pods, objects, **given)


def of_set(
    objects: Mapping[Resource, Sequence[JSONObject]] | None = None,
    *,
    parts: Iterable[JSONObject] = (),
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Observed:
    """Return the observation of a DisaggregatedSet `web`. The role decode has the scaling mode External."""
    roles = [
        {"name": "prefill", "spec": {"replicas": 2}},
        {"name": "decode", "spec": {}, "scaling": {"mode": "External"}},
    ]
    own = {"name": "web", "namespace": NAMESPACE, "uid": "whole", "generation": 1, "creationTimestamp": ago(600)}
    told = {"observedGeneration": 1, "conditions": [PROGRESSING]}
    obj = {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": own | dict(metadata or {}),
        "spec": {"roles": roles},
        "status": told | dict(status or {}),
    }
    whole = set_view(obj, [view(one, ()) for one in parts])
    return Observed(view=bare(whole), now=NOW, objects=objects or {}, set_view=whole)


def part(role: str, revision: str = KEY, replicas: int = 2, ready: int = 2) -> JSONObject:
    """Return a LeaderWorkerSet of the DisaggregatedSet `web`."""
    metadata = {
        "name": f"web-0-{revision}-{role}",
        "uid": f"{revision}-{role}",
        "labels": {ROLE: role, SLICE: "0", REVISION: revision, SET_NAME: "web"},
        "ownerReferences": [{"kind": "DisaggregatedSet", "name": "web", "uid": "whole", "controller": True}],
    }
    return lws(replicas, metadata=metadata, status={"readyReplicas": ready})


def refused(message: str) -> Observed:
    """Return a group whose leader is rejected with this message."""
    text = f"create Pod web-0 in StatefulSet web failed error: {message}"
    return observed(objects={CORE_EVENTS: [event("StatefulSet", "web", "FailedCreate", text)]})


def pending(message: str, *, of: JSONObject | None = None, **given: Any) -> Observed:
    """Return a group with an unschedulable leader and this message. `given` is passed to `observed` and the pod."""
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    objects, running = given.pop("objects", None), given.pop("running", None)
    return observed([pod(status={"conditions": [told]}, **given)], objects, of=of, running=running)


def waiting(reason: str, message: str = "", events: Iterable[tuple[str, str]] = ()) -> Observed:
    """Return a group whose leader container is waiting. `events` contains reasons and messages for its pod."""
    told = [event("Pod", "web-0", kind, text) for kind, text in events]
    leader = placed(status={"containerStatuses": [container(waiting={"reason": reason, "message": message})]})
    return observed([leader, ready(0, 1)], {CORE_EVENTS: told})


def running(*statuses: JSONObject, events: Iterable[tuple[str, str]] = (), **fields: Any) -> Observed:
    """Return a group whose leader has these container statuses and whose worker does not exist yet."""
    told = [event("Pod", "web-0", kind, text) for kind, text in events]
    leader = placed(status={"containerStatuses": list(statuses)} | fields.pop("status", {}), **fields)
    return observed([leader], {CORE_EVENTS: told})
