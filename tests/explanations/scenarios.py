"""The situations by the code of their cause: the fault as the API shows it, in the words of Kubernetes' components."""

from datetime import datetime
from typing import Final

from tests.explanations.builders import (
    KEY,
    ago,
    conditions,
    container,
    ended,
    event,
    keyed,
    lws,
    node,
    observed,
    of_keys,
    of_set,
    part,
    pending,
    placed,
    pod,
    ready,
    recreated,
    refused,
    running,
    waiting,
)

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    SERVICES,
    STATEFULSETS,
    STORAGE_CLASSES,
)
from leaderworkerset.api import labels
from leaderworkerset.api.progressnotes import Hang, SilentRank, render_hang
from leaderworkerset.api.resources import ROLE_SCALERS
from leaderworkerset.core.gang.native import POD_GROUPS
from leaderworkerset.core.gang.volcano import VOLCANO
from leaderworkerset.diagnosis.observed import QUEUED_WORKLOADS, Observed

FORBIDDEN: Final = 'pods "web-0" is forbidden: '
TRANSLATED: Final = 'Internal error occurred: failed calling webhook "mpod.kb.io": failed to call webhook: '
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


def _needs(**requests: str) -> JSONObject:
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def _deferred() -> JSONObject:
    """Return a pod that shall have more than its node has room for now."""
    found = ready(0, metadata={"annotations": {labels.IN_PLACE_RESOURCES: "main.requests.cpu=4"}})
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    pending["message"] = "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000"
    found["status"]["conditions"].append(pending)
    return found


def _manager(**objects: JSONObject) -> Observed:
    kinds = {"deployment": DEPLOYMENTS, "lease": LEASES}
    found = {resource: [objects[word]] if word in objects else [] for word, resource in kinds.items()}
    return observed(objects=found | {CORE_EVENTS: []}, of=UNSEEN)


def _scaler() -> JSONObject:
    owner = {"kind": "DisaggregatedSet", "name": "old", "uid": "another", "controller": True}
    metadata = {"name": "web-decode", "namespace": "prod", "ownerReferences": [owner]}
    return {"kind": "DisaggregatedSetRoleScaler", "metadata": metadata, "spec": {"replicas": 1}}


def _partition() -> Observed:
    rollout = {"rollingUpdateConfiguration": {"partition": 2}}
    status = {"readyReplicas": 3, "updatedReplicas": 1, "conditions": conditions(Available="True")}
    return observed([ready(group) for group in range(3)], of=lws(3, 1, status=status, rolloutStrategy=rollout))


def _starting() -> Observed:
    return observed([pod(made=10, spec={"nodeName": "node-0"}), pod(0, 1, made=10, spec={"nodeName": "node-0"})])


def _held_lws() -> JSONObject:
    return lws(metadata={"finalizers": [HELD], "deletionTimestamp": ago(120)})


def _surge() -> Observed:
    rollout = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}
    told = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}
    surge = pod(1, status={"conditions": [told]})
    return observed([ready(0, 0), surge], of=lws(1, 1, status=UPDATING, rolloutStrategy=rollout))


def _moving(*nodes: str) -> JSONObject:
    told = {"type": "MoveInProgress", "status": "True", "reason": "GroupsMoving"}
    told |= {"message": f"Groups have to leave nodes: {', '.join(nodes)}"}
    return {"readyReplicas": 2, "updatedReplicas": 2, "conditions": [*conditions(Available="True"), told]}


def _closed(name: str) -> JSONObject:
    return node(name) | {"spec": {"unschedulable": True}}


def _waiting_to_move() -> Observed:
    nodes = {NODES: [_closed("node-7"), node("node-8")]}
    return observed([ready(0, node="node-8"), ready(1, node="node-7")], nodes, of=lws(2, 1, status=_moving("node-7")))


def _never_moved() -> Observed:
    rollout = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}
    template = {"workerTemplate": {"spec": {"containers": [{"name": "main", "image": "vllm:1"}]}}}
    of = lws(2, 1, status=_moving("node-0"), groupIdentity="Hash", rolloutStrategy=rollout, template=template)
    return observed([keyed(0), keyed(1, node="node-8")], {NODES: [_closed("node-0"), node("node-8")]}, of=of)


def _only_in_place() -> Observed:
    def revision(key: str, size: int) -> JSONObject:
        named = {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: key}
        return {
            "metadata": {"name": f"web-{key}", "labels": named},
            "data": {"spec": {"networkConfig": {"size": size}}},
        }

    leaders = {"metadata": {"name": "web", "labels": {labels.TEMPLATE_REVISION_HASH: "new"}}}
    foreign = revision("new", 3) | {"data": {"spec": {"template": {}}}, "revision": 9}  # of the leader StatefulSet
    foreign["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "web", "uid": "sts", "controller": True}]
    objects = {CONTROLLER_REVISIONS: [revision(KEY, 1), revision("new", 2), foreign], STATEFULSETS: [leaders]}
    of = lws(1, 1, status=UPDATING, metadata={"annotations": {labels.IN_PLACE: "Only"}})
    return observed([ready(0)], objects, of=of)


def _without_gate() -> Observed:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": ago(60)}
    metadata = {"annotations": {labels.GANG_GROUP: "web-0-e1"}}
    spec = {"schedulingGroup": {"podGroupName": "web-0-e1"}}
    pods = [
        ready(0, 0, spec=spec, metadata=metadata),
        pod(0, 1, spec=spec, metadata=metadata, status={"conditions": [told]}),
    ]
    return observed(pods, {POD_GROUPS: [{"metadata": {"name": "web-0-e1"}, "spec": {}}]})


def _without_api() -> JSONObject:
    message = 'scheduling.k8s.io/v1beta1 Workload API is not available: no matches for kind "Workload"'
    told = {"type": "WorkloadSchedulingCreated", "status": "False", "reason": "APINotAvailable", "message": message}
    return lws(status={"conditions": [told]}, scheduling={})


SCENARIOS: Final[dict[str, Observed]] = {
    "LWS-E001": observed(of=_held_lws()),
    "LWS-E002": refused(FORBIDDEN + "unable to create new content in namespace prod because it is being terminated"),
    "LWS-E003": _manager(
        deployment={"metadata": {"name": "lws-controller-manager", "namespace": "lws-system"}, "spec": {"replicas": 2}}
    ),
    "LWS-E004": _manager(
        lease={
            "metadata": {"name": "b8b2488c.x-k8s.io", "namespace": "lws-system"},
            "spec": {"holderIdentity": "manager-1", "renewTime": ago(100), "leaseDurationSeconds": 15},
        }
    ),
    "LWS-E005": _manager(),
    "LWS-E006": observed(
        [ready(0, 0), placed(0, 1)],
        {
            CUSTOM_RESOURCE_DEFINITIONS: [
                {"metadata": {"name": "leaderworkersets.leaderworkerset.x-k8s.io"}, "spec": {}}
            ]
        },
    ),
    "LWS-E007": refused(
        TRANSLATED
        + 'Post "https://lws-webhook.svc/mutate": tls: failed to verify certificate: x509: certificate has expired'
    ),
    "LWS-E008": refused(
        TRANSLATED + 'Post "https://lws-webhook.svc/mutate": dial tcp 10.0.0.7:443: connection refused'
    ),
    "LWS-E009": refused('admission webhook "policy.example.com" denied the request: images must be signed'),
    "LWS-E010": refused(
        FORBIDDEN + "ValidatingAdmissionPolicy 'signed' with binding 'all' denied request: images must be signed"
    ),
    "LWS-E011": refused(
        'Pod "web-0" is invalid: metadata.labels: Invalid value: "a-long-name": must be no more than 63 bytes'
    ),
    "LWS-E012": refused('Pod "web-0" is invalid: spec.containers[0].image: Required value'),
    "LWS-E013": refused(
        'pods is forbidden: User "system:serviceaccount:lws-system:lws" cannot create resource "pods" in API group ""'
    ),
    "LWS-E014": observed(
        objects={
            STATEFULSETS: [
                {
                    "metadata": {"name": "web", "generation": 2, "creationTimestamp": ago(60)},
                    "status": {"observedGeneration": 1},
                }
            ]
        }
    ),
    "LWS-E015": observed([ready(0, 0)], {CONTROLLER_REVISIONS: []}),
    "LWS-E016": of_set({ROLE_SCALERS: [_scaler()]}, parts=[part("prefill"), part("decode")]),
    "LWS-E017": of_set(
        {
            CORE_EVENTS: [
                event(
                    "DisaggregatedSet",
                    "web",
                    "FailedCreate",
                    "Failed to create LeaderWorkerSet web-0-5b7f-prefill: "
                    'admission webhook "images.example.com" denied the request: image vllm:1 has no digest',
                    uid="whole",
                )
            ]
        }
    ),
    "LWS-E018": observed(of=_without_api()),
    "LWS-E020": refused(
        FORBIDDEN + "exceeded quota: team, requested: requests.cpu=8, used: requests.cpu=30, limited: requests.cpu=32"
    ),
    "LWS-E021": refused(FORBIDDEN + "failed quota: team: must specify limits.cpu for: main; requests.memory for: main"),
    "LWS-E022": refused(FORBIDDEN + "maximum cpu usage per Container is 4, but limit is 8"),
    "LWS-E023": refused(
        FORBIDDEN + 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main")'
    ),
    "LWS-E024": refused(
        FORBIDDEN + "unable to validate against any security context constraint: [provider restricted: runAsUser: 0]"
    ),
    "LWS-E025": refused(FORBIDDEN + 'error looking up service account prod/vllm: serviceaccount "vllm" not found'),
    "LWS-E026": refused(FORBIDDEN + "no PriorityClass with name urgent was found"),
    "LWS-E027": refused(FORBIDDEN + 'pod rejected: RuntimeClass "kata" not found'),
    "LWS-E029": refused("etcdserver: request is too large: failed"),
    "LWS-E030": observed(
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
    ),
    "LWS-E031": observed([pod(spec={"schedulingGates": [{"name": HELD}]})]),
    "LWS-E032": pending(
        "pod group is not ready",
        objects={
            VOLCANO.group_object: [
                {
                    "metadata": {"name": "web-0-5b7f", "labels": {labels.NAME: "web", labels.GROUP_INDEX: "0"}},
                    "spec": {"minMember": 2},
                    "status": {
                        "phase": "Inqueue",
                        "conditions": [
                            {"type": "Unschedulable", "status": "True", "message": "1/2 tasks in gang unschedulable"}
                        ],
                    },
                }
            ]
        },
    ),
    "LWS-E033": observed([pod(spec={"schedulerName": "volcanoo"})]),
    "LWS-E034": observed([pod()]),
    "LWS-E035": pending(
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
        spec=GPUS,
        objects={
            NODES: [node(allocatable={"nvidia.com/gpu": "8"}), node("node-1", allocatable={"nvidia.com/gpu": "4"})]
        },
        running=[placed(1, 0, spec=_needs(**{"nvidia.com/gpu": "2"}))],
    ),
    "LWS-E036": pending(
        "0/1 nodes are available: 1 Insufficient cpu.",
        spec=_needs(cpu="40"),
        objects={NODES: [node(allocatable={"cpu": "32"})]},
    ),
    "LWS-E037": pending("0/1 nodes are available: 1 Insufficient memory.", spec=_needs(memory="64Gi")),
    "LWS-E038": pending("0/3 nodes are available: 3 Too many pods."),
    "LWS-E039": pending(
        "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        objects={NODES: [node(taints=[{"key": "gpu", "value": "b300", "effect": "NoSchedule"}])]},
    ),
    "LWS-E040": pending(
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
        spec={"nodeSelector": {"zone": "a", "gpu": "h100"}},
    ),
    "LWS-E041": observed(
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
    ),
    "LWS-E042": pending("0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints."),
    "LWS-E043": pending("0/3 nodes are available: 3 node(s) were unschedulable."),
    "LWS-E044": pending(
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        spec={"volumes": CLAIMED},
        objects={
            STORAGE_CLASSES: [],
            PERSISTENT_VOLUME_CLAIMS: [{"metadata": {"name": "data-web-0"}, "spec": {"storageClassName": "fast"}}],
        },
    ),
    "LWS-E045": pending("0/3 nodes are available: 3 node(s) had volume node affinity conflict."),
    "LWS-E046": pending('0/3 nodes are available: persistentvolumeclaim "models" not found.'),
    "LWS-E047": pending("0/3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports."),
    "LWS-E048": pending(
        "0/3 nodes are available: 3 Insufficient ephemeral-storage.", spec=_needs(**{"ephemeral-storage": "1Ti"})
    ),
    "LWS-E049": pending("0/3 nodes are available: 3 node(s) refuse for a reason of their own."),
    "LWS-E050": observed([placed(node="node-9")], {NODES: []}),
    "LWS-E051": observed(
        [placed()],
        {
            NODES: [
                node(
                    conditions=[
                        {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
                    ]
                )
            ]
        },
    ),
    "LWS-E052": observed([placed(metadata={"deletionTimestamp": ago(40), "finalizers": [HELD]})]),
    "LWS-E053": observed([placed(metadata={"deletionTimestamp": ago(40)})]),
    "LWS-E054": observed(
        [placed(status={"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."})]
    ),
    "LWS-E055": _without_gate(),
    "LWS-E057": waiting("ImageNotMapped", "images are not pulled here, and the container has no command"),
    "LWS-E058": waiting("ImagePullBackOff", 'Back-off pulling image "vllm:1"'),
    "LWS-E059": waiting("ErrImagePull", "dial tcp: lookup registry.example.com: no such host"),
    "LWS-E060": waiting(
        "ImagePullBackOff",
        'Back-off pulling image "vllm:1"',
        [("Failed", 'Failed to pull image "vllm:1": docker.io/library/vllm:1: not found')],
    ),
    "LWS-E061": waiting("ErrImagePull", "pull access denied, repository does not exist or may require authorization"),
    "LWS-E062": waiting("InvalidImageName", 'couldn\'t parse image name "vllm:1:2"'),
    "LWS-E063": waiting("ErrImageNeverPull", 'Container image "vllm:1" is not present with pull policy of Never'),
    "LWS-E064": observed(
        [
            placed(
                status={"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}
            )
        ],
        {
            CORE_EVENTS: [
                event(
                    "Pod",
                    "web-0",
                    "FailedMount",
                    'MountVolume.SetUp failed for volume "cfg": configmap "cfg" not found',
                )
            ]
        },
    ),
    "LWS-E065": waiting("RunContainerError", 'exec: "vllm": executable file not found in $PATH'),
    "LWS-E066": waiting("CreateContainerConfigError", 'secret "hf-token" not found'),
    "LWS-E067": waiting("CreateContainerError", "failed to create containerd task: mount destination /x not absolute"),
    "LWS-E068": observed(
        [
            placed(
                status={
                    "phase": "Pending",
                    "initContainerStatuses": [container("download", 2, terminated=ended(1, message="no such model"))],
                }
            )
        ]
    ),
    "LWS-E069": observed(
        [placed(status={"phase": "Pending"})],
        {
            CORE_EVENTS: [
                event("Pod", "web-0", "FailedCreatePodSandBox", "Failed to create pod sandbox: no IP addresses left")
            ]
        },
    ),
    "LWS-E070": running(
        container(restarts=2, last=ended(137, reason="OOMKilled"), waiting={"reason": "CrashLoopBackOff"})
    ),
    "LWS-E071": observed(
        [
            placed(status={"containerStatuses": [container(terminated=ended(1, 10))]}),
            placed(
                0,
                1,
                status={"containerStatuses": [container(terminated=ended(3, 30, message="x\nKeyError: 'a'"))]},
            ),
        ]
    ),
    "LWS-E072": running(
        container(restarts=4, running={"startedAt": ago(5)}),
        events=[("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503")],
    ),
    "LWS-E073": running(
        container(running={"startedAt": ago(100)}),
        events=[("Unhealthy", "Readiness probe failed: dial tcp 10.0.0.9:8000: connection refused")],
    ),
    "LWS-E074": running(
        container(running={"startedAt": ago(100)}),
        spec={"readinessGates": [{"conditionType": "example.com/balanced"}]},
        status={"conditions": conditions(Ready="False", ContainersReady="True")},
    ),
    "LWS-E075": running(
        container(restarts=3, last=ended(0, reason="Completed"), waiting={"reason": "CrashLoopBackOff"})
    ),
    "LWS-E079": recreated(
        [
            placed(
                metadata={
                    "annotations": {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"},
                    "finalizers": [labels.GROUP_RESTART_BUDGET_CLEANUP, "foregroundDeletion"],
                    "deletionTimestamp": ago(60),
                }
            )
        ],
        due=-5,
        leader="web-0-uid",
        state=labels.EXHAUSTED,
        failure="main: exit code 3 (Error)",
    ),
    "LWS-E076": observed(
        [
            ready(0, 0, metadata={"annotations": {labels.PROGRESS: STEP, labels.HANG: render_hang(HANG)}}),
            ready(0, 1),
        ],
        of=lws(1, 2, metadata={"annotations": {labels.PROGRESS_TIMEOUT: "5m"}}),
    ),
    "LWS-E077": observed(
        [pod(metadata={"annotations": {labels.GROUP_ENDED: "DeadlineExceeded"}, "deletionTimestamp": ago(60)})],
        of=lws(metadata={"annotations": {labels.RUN_TO_COMPLETION: "true", labels.COMPLETION_DEADLINE: "2h"}}),
    ),
    "LWS-E080": recreated([placed()], due=18, leader="web-0-uid", state=labels.WAITING),
    "LWS-E081": recreated([placed()]),
    "LWS-E098": observed(
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
    ),
    "LWS-E082": observed(
        [running(container(running={"startedAt": ago(100)})).view.groups[0].ranks[0].object or {}, ready(0, 1)]
    ),
    "LWS-E083": observed([placed(spec={"subdomain": "web"})], {SERVICES: []}),
    "LWS-E084": observed(
        [placed(status={"containerStatuses": [container(running={"startedAt": ago(100)})]})],
        of=lws(startupPolicy="LeaderReady"),
    ),
    "LWS-E085": _partition(),
    "LWS-E086": observed(
        [ready(1), placed(0, status={"containerStatuses": [container(running={"startedAt": ago(300)})]})],
        of=lws(2, 1, status=UPDATING | {"updatedReplicas": 1}),
    ),
    "LWS-E087": _surge(),
    "LWS-E088": of_keys([keyed()], {"conditions": [EXCEEDED]}),
    "LWS-E089": of_keys([keyed(0), keyed(1)], {"replicas": 2, "readyReplicas": 2}, key="new", updating=True),
    "LWS-E090": observed([ready()], of=lws(metadata={"deletionTimestamp": ago(5)})),
    "LWS-E091": _starting(),
    "LWS-E092": observed(
        [ready(0), ready(1)], of=lws(2, 1, status=UPDATING | {"updatedReplicas": 1, "readyReplicas": 2})
    ),
    "LWS-E093": of_set(
        parts=[part("prefill"), part("prefill", "old", 1, 1), part("decode")],
        status={
            "roleStatuses": [
                {"name": "prefill", "replicas": 3, "readyReplicas": 3, "updatedReplicas": 1},
                {"name": "decode", "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
            ]
        },
    ),
    "LWS-E094": _waiting_to_move(),
    "LWS-E095": _never_moved(),
    "LWS-E096": _only_in_place(),
    "LWS-E097": observed(
        [ready(1), _deferred()], of=lws(2, 1, status=UPDATING | {"readyReplicas": 1, "updatedReplicas": 1})
    ),
    "LWS-E099": observed(
        [ready(), placed(0, 1, status={"containerStatuses": [container(running={"startedAt": ago(290)})]})]
    ),
}
"""By code: what is observed. Times are those of `builders.NOW`."""
