"""Defines the situations by cause, with the fault as the API reports it, and messages of components."""

from typing import Final

from tests.explanations.builders import (
    ago,
    conditions,
    container,
    ended,
    event,
    keyed,
    lws,
    node,
    normal,
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
from tests.explanations.clouds import (
    DEVICES,
    MOUNTED,
    awaiting_node,
    creating,
    injected_sidecar,
    refused_by_kubelet,
    shared_claim,
)
from tests.explanations.situations import (
    CLAIMED,
    EXCEEDED,
    FORBIDDEN,
    GPUS,
    HANG,
    HELD,
    OWN_WEBHOOK,
    STEP,
    TRANSLATED,
    UPDATING,
    deferred,
    held_lws,
    manager,
    missing_workers,
    needs,
    never_moved,
    old_workers,
    only_in_place,
    partition,
    pod_policy,
    queued,
    racks_taken,
    restarting_in_place,
    scaler,
    starting,
    surge,
    waiting_to_move,
    without_api,
    without_events,
    without_gate,
)

from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    SERVICES,
    STATEFULSETS,
    STORAGE_CLASSES,
)
from leaderworkerset.api import labels
from leaderworkerset.api.progressannotations import render_hang
from leaderworkerset.api.recreationrecord import RecreationState
from leaderworkerset.api.resources import ROLE_SCALERS
from leaderworkerset.core.gang.volcano import VOLCANO
from lwsctl.diagnosis.observed import Observed

SCENARIOS: Final[dict[str, Observed]] = {
    "LWS-E001": observed(of=held_lws()),
    "LWS-E002": refused(FORBIDDEN + "unable to create new content in namespace prod because it is being terminated"),
    "LWS-E003": manager(
        deployment={"metadata": {"name": "lws-controller-manager", "namespace": "lws-system"}, "spec": {"replicas": 2}}
    ),
    "LWS-E004": manager(
        lease={
            "metadata": {"name": "b8b2488c.x-k8s.io", "namespace": "lws-system"},
            "spec": {"holderIdentity": "manager-1", "renewTime": ago(100), "leaseDurationSeconds": 15},
        }
    ),
    "LWS-E005": manager(),
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
    "LWS-E122": pod_policy(OWN_WEBHOOK, "Policy", None, None),
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
    "LWS-E016": of_set({ROLE_SCALERS: [scaler()]}, parts=[part("prefill"), part("decode")]),
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
    "LWS-E018": observed(of=without_api()),
    "LWS-E019": observed(
        [ready()],
        {
            CORE_EVENTS: [
                event(
                    "LeaderWorkerSet",
                    "web",
                    "FailedCreate",
                    'Failed to create worker statefulset for leader pod web-0: statefulsets.apps "web-0" already exists: '
                    "it is controlled by LeaderWorkerSet web-0",
                    uid="set",
                )
                | {"related": {"kind": "Pod", "name": "web-0"}}
            ]
        },
    ),
    "LWS-E028": observed(
        [ready(), ready(0, 1)],
        {
            CORE_EVENTS: [
                event(
                    "LeaderWorkerSet",
                    "web",
                    "FailedCreate",
                    'Failed to create headless service for error: services "web" is forbidden: exceeded quota: few, '
                    "requested: count/services=1, used: count/services=0, limited: count/services=0",
                    uid="set",
                )
            ]
        },
    ),
    "LWS-E120": observed(
        [ready(), ready(0, 1)],
        {
            CORE_EVENTS: [
                event(
                    "LeaderWorkerSet",
                    "web",
                    "FieldContention",
                    "spec.replicas is written by lws and by kubectl (Update), so leader statefulset web is updated only every 30 s",
                    uid="set",
                )
            ]
        },
    ),
    "LWS-E056": observed(
        [ready(), ready(0, 1)], of=lws(metadata={"annotations": {labels.GROUP_RESTART_COUNTS: '{"a/0": -1}'}})
    ),
    "LWS-E100": observed([ready(), ready(0, 1), ready(0, 2)]),
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
    "LWS-E030": queued(),
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
        running=[placed(1, 0, spec=needs(**{"nvidia.com/gpu": "2"}))],
    ),
    "LWS-E036": pending(
        "0/1 nodes are available: 1 Insufficient cpu.",
        spec=needs(cpu="40"),
        objects={NODES: [node(allocatable={"cpu": "32"})]},
    ),
    "LWS-E037": pending("0/1 nodes are available: 1 Insufficient memory.", spec=needs(memory="64Gi")),
    "LWS-E038": pending("0/3 nodes are available: 3 Too many pods."),
    "LWS-E039": pending(
        "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        objects={NODES: [node(taints=[{"key": "gpu", "value": "b300", "effect": "NoSchedule"}])]},
    ),
    "LWS-E118": pending(
        "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        objects={
            NODES: [
                node(
                    taints=[{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}],
                    conditions=[
                        {"type": "DiskPressure", "status": "True", "message": "kubelet has disk pressure"},
                        {"type": "Ready", "status": "True"},
                    ],
                )
            ]
        },
    ),
    "LWS-E040": pending(
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
        spec={"nodeSelector": {"zone": "a", "gpu": "h100"}},
    ),
    "LWS-E108": awaiting_node(
        normal(
            "TriggeredScaleUp", "pod triggered scale-up: [{gpu-pool-a 0->2 (max: 8)}]", component="cluster-autoscaler"
        )
    ),
    "LWS-E109": creating(normal("Pulling", 'Pulling image "vllm:1"', seconds=500, component="kubelet")),
    "LWS-E110": refused_by_kubelet("UnexpectedAdmissionError", DEVICES, 3),
    "LWS-E111": injected_sidecar(700),
    "LWS-E116": shared_claim(placed(0, 1, node="node-1", spec=MOUNTED)),
    "LWS-E041": racks_taken(),
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
        "0/3 nodes are available: 3 Insufficient ephemeral-storage.", spec=needs(**{"ephemeral-storage": "1Ti"})
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
    "LWS-E121": observed(
        [placed(metadata={"deletionTimestamp": ago(-555), "deletionGracePeriodSeconds": 600}), ready(0, 1)]
    ),
    "LWS-E053": observed([placed(metadata={"deletionTimestamp": ago(40)})]),
    "LWS-E054": observed(
        [placed(status={"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."})]
    ),
    "LWS-E055": without_gate(),
    "LWS-E057": waiting(
        "ImageNotMapped", "the container does not have a command, and images are not pulled on a local cluster"
    ),
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
    "LWS-E067": waiting("CreateContainerError", "context deadline exceeded"),
    "LWS-E112": waiting(
        "CreateContainerConfigError",
        'container has runAsNonRoot and image will run as root (pod: "web-0_prod(1)", container: main)',
    ),
    "LWS-E113": waiting(
        "RunContainerError",
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start "
        "container process: error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected "
        "mode as 'legacy' nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object "
        "file: no such file or directory: unknown",
    ),
    "LWS-E114": waiting(
        "CreateContainerConfigError",
        'failed to create subPath directory for volumeMount "models" of container "main"',
    ),
    "LWS-E115": running(
        container(restarts=2, last=ended(0, reason="Completed"), waiting={"reason": "CrashLoopBackOff"}),
        events=[("FailedPostStartHook", "PostStartHook failed")],
    ),
    "LWS-E117": waiting(
        "CreateContainerConfigError",
        'container "main" does not declare a port named "http". Use a declared port',
    ),
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
        container(restarts=4, last=ended(137, 10), running={"startedAt": ago(5)}),
        events=[
            ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503"),
            ("Killing", "Container main failed liveness probe, will be restarted"),
        ],
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
        state=RecreationState.EXHAUSTED,
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
    "LWS-E101": observed(
        [
            placed(
                spec={
                    "containers": [{"name": "main", "image": "vllm:1", "readinessProbe": {"initialDelaySeconds": 900}}]
                },
                status={"containerStatuses": [container(running={"startedAt": ago(10)})]},
            ),
            ready(0, 1),
        ]
    ),
    "LWS-E078": observed(
        [placed(), placed(0, 1, status={"containerStatuses": [container(terminated=ended(0, reason="Completed"))]})],
        of=lws(metadata={"annotations": {labels.RUN_TO_COMPLETION: "true"}}),
    ),
    "LWS-E080": recreated([placed()], due=18, leader="web-0-uid", state=RecreationState.WAITING),
    "LWS-E081": recreated([placed()]),
    "LWS-E098": restarting_in_place(),
    "LWS-E082": observed(
        [running(container(running={"startedAt": ago(100)})).view.groups[0].ranks[0].object or {}, ready(0, 1)]
    ),
    "LWS-E083": observed([placed(spec={"subdomain": "web"})], {SERVICES: []}),
    "LWS-E084": observed(
        [placed(status={"containerStatuses": [container(running={"startedAt": ago(100)})]})],
        of=lws(startupPolicy="LeaderReady"),
    ),
    "LWS-E085": partition(),
    "LWS-E086": observed(
        [ready(1), placed(0, status={"containerStatuses": [container(running={"startedAt": ago(300)})]})],
        of=lws(2, 1, status=UPDATING | {"updatedReplicas": 1}),
    ),
    "LWS-E087": surge(),
    "LWS-E088": of_keys([keyed()], {"conditions": [EXCEEDED]}),
    "LWS-E089": of_keys([keyed(0), keyed(1)], {"replicas": 2, "readyReplicas": 2}, key="new", updating=True),
    "LWS-E090": observed([ready()], of=lws(metadata={"deletionTimestamp": ago(5)})),
    "LWS-E091": starting(),
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
    "LWS-E094": waiting_to_move(),
    "LWS-E095": never_moved(),
    "LWS-E096": only_in_place(),
    "LWS-E097": observed(
        [ready(1), deferred()], of=lws(2, 1, status=UPDATING | {"readyReplicas": 1, "updatedReplicas": 1})
    ),
    "LWS-E099": observed(
        [ready(), placed(0, 1, made=900, status={"containerStatuses": [container(running={"startedAt": ago(890)})]})]
    ),
    "LWS-E119": without_events(),
    "LWS-E106": missing_workers(),
    "LWS-E107": old_workers(),
    "LWS-E105": pending(
        "0/2 nodes are available: 2 cannot allocate all claims.",
        spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]},
        objects={
            CORE_EVENTS: [
                event(
                    "Pod",
                    "web-0",
                    "FailedResourceClaimCreation",
                    'PodResourceClaim gpu: resource claim template "gpus": resourceclaimtemplate.resource.k8s.io "gpus" not found',
                )
            ]
        },
    ),
}
"""The observations by code. Times are relative to `builders.NOW`."""
