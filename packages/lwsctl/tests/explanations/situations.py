"""Builds situations that do not fit into a row of the scenario table, and strings that they share."""

from datetime import datetime
from typing import Final

from msgspec.structs import replace
from tests.explanations.builders import (
    KEY,
    NAMESPACE,
    ago,
    conditions,
    container,
    ended,
    event,
    keyed,
    lws,
    node,
    observed,
    placed,
    pod,
    ready,
)

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    STATEFULSETS,
)
from leaderworkerset.api import labels
from leaderworkerset.api.progressannotations import Hang, SilentRank
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.core.gang.native import POD_GROUPS
from leaderworkerset.install.workload import CONFIGURATION_KEY
from lwsctl.diagnosis.observed import QUEUED_WORKLOADS, Observed

FORBIDDEN: Final = 'pods "web-0" is forbidden: '
TRANSLATED: Final = 'Internal error occurred: failed calling webhook "mpod.kb.io": failed to call webhook: '
OWN_WEBHOOK: Final = (
    TRANSLATED
    + 'Post "https://lws-webhook-service.lws-system.svc:443/mutate--v1-pod?timeout=10s": context deadline exceeded'
)
"""The API server's error if the manager's webhook does not respond."""

CLAIMED: Final = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]
GPUS: Final = {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]}
RACKED: Final = lws(2, 1, metadata={"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}})
UNSEEN: Final = lws(status={"observedGeneration": 0}, metadata={"generation": 2, "creationTimestamp": ago(90)})
UPDATING: Final = {"conditions": conditions(UpdateInProgress="True")}
EXCEEDED: Final = {
    "type": "Progressing",
    "status": "False",
    "reason": "ProgressDeadlineExceeded",
    "message": 'ReplicaSet "web-7d9f8b6c4" has timed out progressing.',
}
SILENT: Final = datetime.fromisoformat(ago(630))
STEP: Final = f"step=120 total=5000 loss=2.1 at={ago(600)} rate=2.000000"
HANG: Final = Hang(
    since=datetime.fromisoformat(ago(600)),
    ranks=(
        SilentRank(pod="web-0-1", uid="web-0-1-uid", rank=1, since=SILENT, waits="a lock (futex)"),
        SilentRank(pod="web-0", uid="web-0-uid", rank=0, since=datetime.fromisoformat(ago(600))),
    ),
)
HELD: Final = "example.com/held"


def pod_policy(why: str, mode: str, *stored: JSONObject | None) -> Observed:
    """Return a rejected leader with the stored objects of the policy, and the configured mode."""
    text = f"apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\npodAdmission: {mode}\n"
    configuration = {"metadata": {"name": "lws-manager-config"}, "data": {CONFIGURATION_KEY: text}}
    kinds = dict(zip(podpolicy.KINDS, ([obj] if obj else [] for obj in stored), strict=True))
    given = {CONFIG_MAPS: [configuration], DEPLOYMENTS: [], LEASES: [], **kinds}
    message = f"create Pod web-0 in StatefulSet web failed error: {why}"
    return observed(objects=given | {CORE_EVENTS: [event("StatefulSet", "web", "FailedCreate", message)]})


def needs(**requests: str) -> JSONObject:
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def deferred() -> JSONObject:
    """Return a pod that requests more than the free capacity of its node."""
    found = ready(0, metadata={"annotations": {labels.IN_PLACE_RESOURCES: "main.requests.cpu=4"}})
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    pending["message"] = "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000"
    found["status"]["conditions"].append(pending)
    return found


def manager(**objects: JSONObject) -> Observed:
    kinds = {"deployment": DEPLOYMENTS, "lease": LEASES}
    found = {resource: [objects[word]] if word in objects else [] for word, resource in kinds.items()}
    return observed(objects=found | {CORE_EVENTS: []}, of=UNSEEN)


def scaler() -> JSONObject:
    owner = {"kind": "DisaggregatedSet", "name": "old", "uid": "another", "controller": True}
    metadata = {"name": "web-decode", "namespace": "prod", "ownerReferences": [owner]}
    return {"kind": "DisaggregatedSetRoleScaler", "metadata": metadata, "spec": {"replicas": 1}}


def partition() -> Observed:
    rollout = {"rollingUpdateConfiguration": {"partition": 2}}
    status = {"readyReplicas": 3, "updatedReplicas": 1, "conditions": conditions(Available="True")}
    return observed([ready(group) for group in range(3)], of=lws(3, 1, status=status, rolloutStrategy=rollout))


def starting() -> Observed:
    return observed([pod(made=10, spec={"nodeName": "node-0"}), pod(0, 1, made=10, spec={"nodeName": "node-0"})])


def statefulset(name: str, replicas: int, made: float, pods: int = 0) -> JSONObject:
    """Return an observed StatefulSet that has this number of pods."""
    kind = "LeaderWorkerSet" if name == "web" else "Pod"
    owner = {"kind": kind, "name": name, "uid": "set" if name == "web" else f"uid-of-{name}", "controller": True}
    metadata = {"name": name, "namespace": NAMESPACE, "generation": 1, "creationTimestamp": ago(made)}
    metadata["ownerReferences"] = [owner]
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": {"observedGeneration": 1, "replicas": pods}}


def missing_workers(seconds: float = 180) -> Observed:
    """Return a rollout whose newest group has had no worker for `seconds`."""
    statefulsets = [
        statefulset("web", 2, 600, 2),
        statefulset("web-0", 3, 300, 3),
        statefulset("web-1", 3, seconds),
    ]
    old = [ready(0, rank) for rank in range(4)]
    of = lws(2, 4, status=UPDATING | {"updatedReplicas": 1, "readyReplicas": 1})
    return observed([*old, placed(1, made=seconds)], {STATEFULSETS: statefulsets, CORE_EVENTS: []}, of=of)


def old_workers() -> Observed:
    """Return a group with a new leader, and a worker of the previous leader that terminates within 20 seconds."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web-0", "uid": "old", "controller": True}
    going = {"deletionTimestamp": ago(-20), "deletionGracePeriodSeconds": 30, "ownerReferences": [owner]}
    pods = [placed(made=10), *(placed(0, rank, made=500, metadata=going) for rank in (1, 2))]
    return observed(pods, {STATEFULSETS: [statefulset("web", 1, 600, 1)]}, of=lws(1, 3))


def held_lws() -> JSONObject:
    return lws(metadata={"finalizers": [HELD], "deletionTimestamp": ago(120)})


def surge() -> Observed:
    rollout = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}
    told = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}
    surge = pod(1, status={"conditions": [told]})
    return observed([ready(0, 0), surge], of=lws(1, 1, status=UPDATING, rolloutStrategy=rollout))


def moving(*nodes: str) -> JSONObject:
    told = {"type": "MoveInProgress", "status": "True", "reason": "GroupsMoving"}
    told |= {"message": f"Groups must be moved from their nodes: {', '.join(nodes)}"}
    return {"readyReplicas": 2, "updatedReplicas": 2, "conditions": [*conditions(Available="True"), told]}


def closed(name: str) -> JSONObject:
    return node(name) | {"spec": {"unschedulable": True}}


def waiting_to_move() -> Observed:
    nodes = {NODES: [closed("node-7"), node("node-8")]}
    return observed([ready(0, node="node-8"), ready(1, node="node-7")], nodes, of=lws(2, 1, status=moving("node-7")))


def never_moved() -> Observed:
    rollout = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}
    template = {"workerTemplate": {"spec": {"containers": [{"name": "main", "image": "vllm:1"}]}}}
    of = lws(2, 1, status=moving("node-0"), groupIdentity="Hash", rolloutStrategy=rollout, template=template)
    return observed([keyed(0), keyed(1, node="node-8")], {NODES: [closed("node-0"), node("node-8")]}, of=of)


def only_in_place() -> Observed:
    def revision(key: str, size: int) -> JSONObject:
        named = {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: key}
        return {
            "metadata": {"name": f"web-{key}", "labels": named},
            "data": {"spec": {"networkConfig": {"size": size}}},
        }

    leaders = {"metadata": {"name": "web", "labels": {labels.TEMPLATE_REVISION_HASH: "new"}}}
    # a revision of the leader StatefulSet
    foreign = revision("new", 3) | {"data": {"spec": {"template": {}}}, "revision": 9}
    foreign["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "web", "uid": "sts", "controller": True}]
    objects = {CONTROLLER_REVISIONS: [revision(KEY, 1), revision("new", 2), foreign], STATEFULSETS: [leaders]}
    of = lws(1, 1, status=UPDATING, metadata={"annotations": {labels.IN_PLACE: "Only"}})
    return observed([ready(0)], objects, of=of)


def without_gate() -> Observed:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": ago(60)}
    metadata = {"annotations": {labels.GANG_GROUP: "web-0-e1"}}
    spec = {"schedulingGroup": {"podGroupName": "web-0-e1"}}
    pods = [
        ready(0, 0, spec=spec, metadata=metadata),
        pod(0, 1, spec=spec, metadata=metadata, status={"conditions": [told]}),
    ]
    return observed(pods, {POD_GROUPS: [{"metadata": {"name": "web-0-e1"}, "spec": {}}]})


def without_api() -> JSONObject:
    message = 'scheduling.k8s.io/v1beta1 Workload API is not available: no matches for kind "Workload"'
    told = {"type": "WorkloadSchedulingCreated", "status": "False", "reason": "APINotAvailable", "message": message}
    return lws(status={"conditions": [told]}, scheduling={})


def without_events() -> Observed:
    """Return a rank that is not ready for an unknown reason. The user may not read its events."""
    late = placed(0, 1, made=900, status={"containerStatuses": [container(running={"startedAt": ago(890)})]})
    return replace(observed([ready(), late]), unread_kinds=frozenset({CORE_EVENTS}))


def queued() -> Observed:
    return observed(
        [
            pod(
                metadata={"annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "lws-web-0"}},
                spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
                status={"conditions": conditions(PodScheduled="False")},
            )
        ],
        {
            QUEUED_WORKLOADS: [
                {
                    "metadata": {"name": "lws-web-0"},
                    "status": {
                        "conditions": [
                            {
                                "type": "QuotaReserved",
                                "status": "False",
                                "message": "insufficient quota for nvidia.com/gpu",
                            }
                        ]
                    },
                }
            ]
        },
        of=lws(metadata={"labels": {labels.QUEUE_NAME: "team"}}),
    )


def racks_taken() -> Observed:
    return observed(
        [
            ready(0),
            pod(
                1,
                status={
                    "conditions": [
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "message": "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
                        }
                    ]
                },
            ),
        ],
        {NODES: [node(labels={"rack": "r1"})]},
        of=RACKED,
    )


def restarting_in_place() -> Observed:
    return observed(
        [
            ready(0, 0),
            placed(
                0,
                1,
                metadata={"annotations": {labels.RESTARTED_IN_PLACE: f"2={ago(12)}"}},
                status={
                    "containerStatuses": [
                        container(
                            restarts=2, last=ended(137, 12, "RestartingAllContainers"), running={"startedAt": ago(11)}
                        )
                    ]
                },
            ),
        ],
        of=lws(1, 2, metadata={"annotations": {labels.IN_PLACE_RESTARTS: "120s"}}),
    )
