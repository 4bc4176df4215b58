"""Objects as the API server serves them, with the values that matter to a test given by name and the rest filled in."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from testkit import objects

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.core.leaderworkerset import outdatedleaders, revisions
from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply, Source
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.policies.policy import GroupObjects, HeadlessService, LiveGroup

SETTLED = HeadlessService(is_settled=True)
"""The headless service exists."""

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NAMESPACE = "default"


def pod_template(image: str = "app:1", **metadata: Any) -> JSONObject:
    """Return a pod template with one container."""
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image, "resources": {}}]}}


def leaderworkerset_object(
    name: str = "web",
    *,
    replicas: int = 2,
    size: int = 2,
    image: str = "app:1",
    rollout: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: JSONObject | None = None,
) -> JSONObject:
    """Return a LeaderWorkerSet. `rollout`, `template`, `spec` and `metadata` extend or replace the default fields."""
    return {
        "apiVersion": leaderworkerset.API_VERSION,
        "kind": leaderworkerset.KIND,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-of-{name}",
            "generation": 1,
            "resourceVersion": "1",
        }
        | dict(metadata or {}),
        "spec": {
            "replicas": replicas,
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}
                | dict(rollout or {}),
            },
            "networkConfig": {"subdomainPolicy": "Shared"},
            "groupIdentity": "Ordinal",
            "groupReplacementPolicy": "PostTermination",
            "leaderWorkerTemplate": {
                "size": size,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "workerTemplate": pod_template(image),
            }
            | dict(template or {}),
        }
        | dict(spec or {}),
    } | ({"status": status} if status is not None else {})


def key_of(lws: JSONObject) -> str:
    """Return the key of the revision of the LeaderWorkerSet's spec."""
    return revisions.content_hash(revisions.build_data(lws))


def annotated(annotations: Mapping[str, str]) -> leaderworkerset.LeaderWorkerSet:
    """Return a LeaderWorkerSet with these annotations, decoded."""
    return leaderworkerset.decode(leaderworkerset_object(metadata={"annotations": dict(annotations)}))


def revision(lws: JSONObject, *, key: str | None = None, number: int = 1, uid: str = "") -> JSONObject:
    """Return the stored ControllerRevision of a LeaderWorkerSet."""
    data = revisions.build_data(lws)
    built = revisions.build(lws, key=key or revisions.content_hash(data), number=number, data=data)
    return built | {"metadata": built["metadata"] | {"uid": uid or f"uid-of-{meta.name(built)}"}}


def leader_pod(
    lws: JSONObject,
    index: int = 0,
    *,
    key: str | None = None,
    ready: bool = True,
    uid: str = "",
    extra_labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **fields: Any,
) -> JSONObject:
    """Return the leader pod of a group."""
    name = f"{meta.name(lws)}-{index}"
    own = {
        labels.NAME: meta.name(lws),
        labels.WORKER_INDEX: "0",
        labels.GROUP_INDEX: str(index),
        labels.GROUP_KEY: f"group-key-{index}",
        labels.TEMPLATE_REVISION_HASH: key_of(lws) if key is None else key,
    }
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": meta.name(lws), "uid": "uid-of-set"}}
    metadata = {
        "uid": uid or f"uid-of-{name}",
        "labels": own | dict(extra_labels or {}),
        "annotations": dict(annotations or {}),
    }
    return _pod(name, owner, metadata, ready=ready, **fields)


def worker_pod(leader: JSONObject, index: int = 1, *, uid: str = "", ready: bool = True, **fields: Any) -> JSONObject:
    """Return a worker of the group that `leader` leads, owned by its worker StatefulSet."""
    name = f"{meta.name(leader)}-{index}"
    own = meta.labels(leader) | {labels.WORKER_INDEX: str(index)}
    metadata = {"uid": uid or f"uid-of-{name}", "labels": own}
    return _pod(name, worker_statefulset(leader), metadata, ready=ready, **fields)


def _pod(
    name: str,
    owner: JSONObject,
    metadata: JSONObject,
    *,
    ready: bool,
    node: str = "",
    phase: str = "Running",
    deleting: bool = False,
    restarts: int = 0,
    init_restarts: int = 0,
    resources: JSONObject | None = None,
) -> JSONObject:
    base = {"resourceVersion": "1", "ownerReferences": [meta.controller_reference(owner)]}
    base |= {"deletionTimestamp": "2026-03-01T11:59:59Z"} if deleting else {}
    return objects.pod(
        name,
        ready=ready,
        node=node,
        metadata=base | metadata,
        spec={"containers": [{"name": "main", "resources": resources or {}}]},
        phase=phase,
        containerStatuses=[{"name": "main", "restartCount": restarts}],
        initContainerStatuses=[{"name": "init", "restartCount": init_restarts}],
    )


def rank_pod(
    group: int | str = 0,
    rank: int = 0,
    *,
    key: str = "r1",
    size: int = 2,
    ready: bool | None = True,
    metadata: Mapping[str, Any] | None = None,
    **fields: Any,
) -> JSONObject:
    """Return the pod of a rank of the LeaderWorkerSet `web`. `fields` is passed to `testkit.objects.pod`."""
    own = {
        labels.NAME: "web",
        labels.GROUP_INDEX: str(group),
        labels.WORKER_INDEX: str(rank),
        labels.TEMPLATE_REVISION_HASH: key,
    }
    base = {"labels": own, "annotations": {labels.SIZE: str(size)}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    name = f"web-{group}-{rank}" if rank else f"web-{group}"
    return objects.pod(name, ready=ready, metadata=objects.merge(base, metadata or {}), **fields)


def node(name: str = "n", cpu: str = "4", labels: Mapping[str, str] | None = None, **spec: Any) -> JSONObject:
    """Return a node with room for 10 pods. `spec` contains the other fields, for example taints."""
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name} | dict(labels or {})}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": {"cpu": cpu, "pods": "10"}}}


def worker_statefulset(
    leader: JSONObject, *, replicas: int = 1, ready: bool = True, key: str | None = None, uid: str = ""
) -> JSONObject:
    """Return the StatefulSet of the workers of a group."""
    copied = (labels.NAME, labels.GROUP_INDEX, labels.GROUP_KEY, labels.TEMPLATE_REVISION_HASH)
    own = {label: meta.labels(leader)[label] for label in copied if label in meta.labels(leader)}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": meta.name(leader),
            "namespace": NAMESPACE,
            "uid": uid or f"uid-of-workers-{meta.uid(leader)}",
            "labels": own if key is None else own | {labels.TEMPLATE_REVISION_HASH: key},
            "ownerReferences": [meta.controller_reference(leader)],
        },
        "spec": {"replicas": replicas},
        "status": {
            "replicas": replicas,
            "availableReplicas": replicas if ready else 0,
            "currentRevision": "r1",
            "updateRevision": "r1",
        },
    }


def live_group(
    *,
    pods: Sequence[JSONObject] = (),
    gone: Sequence[JSONObject] = (),
    statefulsets: Sequence[JSONObject] = (),
    **fields: Any,
) -> LiveGroup:
    """Return a group with the objects that carry its name and index."""
    return LiveGroup(objects=GroupObjects(pods=pods, deleted=gone, statefulsets=statefulsets), **{"now": NOW} | fields)


def whole_group(*workers: JSONObject, lws: JSONObject, leader: JSONObject, **fields: Any) -> LiveGroup:
    """Return a group with its pods, its worker StatefulSet, and the revision of its LeaderWorkerSet."""
    usual = {
        "pods": (leader, *workers),
        "statefulsets": (worker_statefulset(leader),),
        "revisions": (revision(lws),),
    }
    return live_group(leader=leader, obj=lws, **usual | fields)


def is_group_ready(group: GroupFacts, size: int) -> bool:
    """Return whether leader and workers are ready (R-STAT-6)."""
    return group.is_leader_ready and (size == 1 or (group.workers is not None and group.workers.is_ready))


def as_applied(desired: JSONObject, **changes: Any) -> JSONObject:
    """Return the live object after an apply. `changes` contains other top-level fields."""
    metadata = {"uid": f"uid-of-{meta.name(desired)}", "resourceVersion": "1"}
    return desired | {"metadata": desired["metadata"] | metadata} | changes


def applied(lws: JSONObject, statefulset: JSONObject) -> LastApply:
    """Return the remembered apply whose result is the current leader StatefulSet."""
    current = outdatedleaders.read_progress(statefulset)
    source = Source(Identity.from_object(lws), groupname.revision_key(statefulset), current.replicas, current.partition)
    return LastApply(source, Identity.from_object(statefulset))


def hash_object(name: str = "web", *, policy: str = "PostTermination", **fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet whose groups have random keys."""
    return leaderworkerset_object(
        name, spec={"groupIdentity": "Hash", "groupReplacementPolicy": policy} | fields.pop("spec", {}), **fields
    )


def hash_leader(
    lws: JSONObject, letter: str = "a", *, gated: bool = False, replaces: str = "", created: str = "", **fields: Any
) -> JSONObject:
    """Return a leader after admission, with a random key of one repeated letter.

    A `gated` one has the scheduling gate.
    """
    key, name = letter * 40, f"{meta.name(lws)}-7d9f8b6c4-{letter * 5}"
    own = {labels.GROUP_INDEX: key, labels.GROUP_KEY: key}
    annotations = {labels.GROUP_IDENTITY: "Hash"} | ({labels.REPLACES: replaces} if replaces else {})
    annotations |= {labels.POD_DELETION_COST: "-100"} if gated else {}
    size = fields.pop("size", meta.spec(lws)["leaderWorkerTemplate"]["size"])
    annotations |= {labels.SIZE: str(size)} | fields.pop("annotations", {})
    made = leader_pod(lws, uid=fields.pop("uid", f"uid-of-{name}"), extra_labels=own, annotations=annotations, **fields)
    spec: JSONObject = {"hostname": f"{meta.name(lws)}-{key[:8]}", "subdomain": meta.name(lws)}
    spec |= {"readinessGates": [{"conditionType": labels.GROUP_READY}]} if size > 1 else {}
    spec |= {"schedulingGates": [{"name": labels.REPLACEMENT_GATE}]} if gated else {}
    metadata = {"name": name, "creationTimestamp": created or f"2026-03-01T12:00:{ord(letter) - 97:02}Z"}
    return made | {"metadata": made["metadata"] | metadata, "spec": made["spec"] | spec}


def by_leader(groups: Iterable[GroupFacts]) -> dict[str, GroupFacts]:
    """Return groups by the names of their leaders."""
    return {group.leader: group for group in groups}
