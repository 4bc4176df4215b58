"""Every label, annotation and environment variable of the contract (tables 1.4 to 1.6), defined only here."""

from typing import Final

PREFIX: Final = "leaderworkerset.sigs.k8s.io/"

# Labels.
NAME: Final = PREFIX + "name"
TEMPLATE_REVISION_HASH: Final = PREFIX + "template-revision-hash"
GROUP_INDEX: Final = PREFIX + "group-index"
WORKER_INDEX: Final = PREFIX + "worker-index"
GROUP_KEY: Final = PREFIX + "group-key"
SUBGROUP_INDEX: Final = PREFIX + "subgroup-index"
SUBGROUP_KEY: Final = PREFIX + "subgroup-key"
ROLE: Final = PREFIX + "role"
SCHEDULING_LEVEL: Final = PREFIX + "scheduling-level"

# A label of Kubernetes: the revision of a StatefulSet that a pod was made from.
STATEFULSET_REVISION: Final = "controller-revision-hash"

# A label of Kueue: the queue that a LeaderWorkerSet waits in.
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"

# Annotations of Kueue: the group of a pod serves, and so never finishes; the pod is not made again when it has ended.
POD_GROUP_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
RETRIABLE_IN_GROUP: Final = "kueue.x-k8s.io/retriable-in-group"

# Scheduling gates of Kueue: until there is quota, and until the nodes of a topology are chosen.
QUOTA_GATE: Final = "kueue.x-k8s.io/admission"
TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"

# Annotations.
SIZE: Final = PREFIX + "size"
REPLICAS: Final = PREFIX + "replicas"
LEADER_NAME: Final = PREFIX + "leader-name"
EXCLUSIVE_TOPOLOGY: Final = PREFIX + "exclusive-topology"
SUBGROUP_EXCLUSIVE_TOPOLOGY: Final = PREFIX + "subgroup-exclusive-topology"
SUBGROUP_SIZE: Final = PREFIX + "subgroup-size"
SUBGROUP_POLICY_TYPE: Final = PREFIX + "subgroup-policy-type"
SUBDOMAIN_POLICY: Final = PREFIX + "subdomainPolicy"
LEADER_REQUESTS_TPUS: Final = PREFIX + "leader-requests-tpus"
RECREATE_GROUP_AFTER_START: Final = PREFIX + "experimental-recreate-group-after-start"

GROUP_IDENTITY: Final = PREFIX + "group-identity"
LEADER_ADDRESS: Final = PREFIX + "leader-address"
WORKLOAD_AWARE_SCHEDULING: Final = PREFIX + "workload-aware-scheduling"
WORKLOAD_NAME: Final = PREFIX + "workload-name"
GROUP_RESTART_COUNTS: Final = PREFIX + "group-restart-counts"
GROUP_RESTART_BUDGET_EXHAUSTED: Final = PREFIX + "group-restart-budget-exhausted"
RECOVER: Final = PREFIX + "recover"

# Annotations of Kubernetes: which pods a ReplicaSet deletes first, and what delegates scheduling to a larger Workload.
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
GROUP_TEMPLATE_NAME: Final = "scheduling.k8s.io/group-template-name"
PARENT_COMPOSITE_POD_GROUP: Final = "scheduling.k8s.io/parent-compositepodgroup"

# The finalizer of the pods of a group that used up its restarts, the readiness gate of leaders whose workers count, and
# the scheduling gate of leaders that may have to wait for the end of another group.
GROUP_RESTART_BUDGET_CLEANUP: Final = PREFIX + "group-restart-budget-cleanup"
GROUP_READY: Final = PREFIX + "group-ready"
REPLACEMENT_GATE: Final = PREFIX + "group-replacement"

# An annotation of our own: the leader of the group that a new leader replaces.
REPLACES: Final = PREFIX + "replaces"

# Annotations of our own: the record of a group's recreations (docs/adr/0003-recreation-backoff.md).
RECREATIONS: Final = PREFIX + "recreations"
RECREATED_LEADER: Final = PREFIX + "recreated-leader"
RECREATE_AFTER: Final = PREFIX + "recreate-after"
RESTARTS_USED: Final = PREFIX + "restarts-used"
RECREATION_STATE: Final = PREFIX + "recreation-state"
FAILED_POD: Final = PREFIX + "failed-pod"
FAILED_POD_UID: Final = PREFIX + "failed-pod-uid"
FAILED_POD_RESTARTS: Final = PREFIX + "failed-pod-restarts"
FAILURE: Final = PREFIX + "failure"
LONGEST_FAILED_RUN: Final = PREFIX + "longest-failed-run"
FAILURE_ORIGIN: Final = PREFIX + "failure-origin"
DELETED_AT: Final = PREFIX + "deleted-at"
RESUMED: Final = PREFIX + "resumed"

# Annotations of our own: how the groups of one LeaderWorkerSet are recreated (docs/how-to/restarts.md).
RESTART_BACKOFF: Final = PREFIX + "restart-backoff"
RESTART_FIRST_DELAY: Final = PREFIX + "restart-first-delay"
RESTART_LONGEST_DELAY: Final = PREFIX + "restart-longest-delay"
RESTART_RESET_AFTER: Final = PREFIX + "restart-reset-after"
MAX_GROUP_RESTARTS: Final = PREFIX + "max-group-restarts"
RESUME_GROUP_RESTARTS: Final = PREFIX + "resume-group-restarts"
RELEASE_LOST_PODS_AFTER: Final = PREFIX + "release-lost-pods-after"

# Annotations of our own: how long a pod may take that restarts all its containers in place, and, on a pod, how often it did
# (docs/adr/0027-restarts-of-all-containers.md).
IN_PLACE_RESTARTS: Final = PREFIX + "in-place-restarts"
RESTARTED_IN_PLACE: Final = PREFIX + "restarted-in-place"

# Annotations of our own: whether groups are updated in place (docs/adr/0024-update-in-place.md); on a leader, the revision
# that its group is brought to, that of the leader StatefulSet that belongs to it, and the one that it cannot come to; on a
# pod, what it ran before, and the CPU and memory that it shall have.
IN_PLACE: Final = PREFIX + "in-place"
IN_PLACE_REVISION: Final = PREFIX + "in-place-revision"
IN_PLACE_STATEFULSET_REVISION: Final = PREFIX + "in-place-statefulset-revision"
IN_PLACE_REFUSED: Final = PREFIX + "in-place-refused"
IN_PLACE_BEFORE: Final = PREFIX + "in-place-before"
IN_PLACE_RESOURCES: Final = PREFIX + "in-place-resources"

# Annotations of our own: how the groups of one LeaderWorkerSet end, and where they come back (docs/how-to/places-and-ends.md).
POD_TERMINATION_POLICY: Final = PREFIX + "pod-termination-policy"
STAY_ON_NODES: Final = PREFIX + "stay-on-nodes"

# Annotations of our own: the nodes that a group had, by rank, of which leader, and the one that it shall avoid.
FORMER_NODES: Final = PREFIX + "former-nodes"
FORMER_LEADER: Final = PREFIX + "former-leader"
AVOIDED_NODE: Final = PREFIX + "avoided-node"

# An annotation of our own: how many groups evictions may take away at once (docs/how-to/drain.md).
DISRUPTION_BUDGET: Final = PREFIX + "disruption-budget"

# Annotations of our own: that autoscalers leave a group alone while it starts, and the pods that are marked for that.
DO_NOT_DISRUPT: Final = PREFIX + "do-not-disrupt"
MARKED_STARTING: Final = PREFIX + "marked-starting"

# Annotations of others, with which cluster autoscaler and Karpenter leave a pod alone.
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KARPENTER_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"

# Annotations of our own: what a LeaderWorkerSet asks for about its progress and its end, and what its leader pods say of it
# (docs/adr/0026-progress-and-completion.md).
FOLLOW_PROGRESS: Final = PREFIX + "follow-progress"
PROGRESS_TIMEOUT: Final = PREFIX + "progress-timeout"
ON_HANG: Final = PREFIX + "on-hang"
RUN_TO_COMPLETION: Final = PREFIX + "run-to-completion"
COMPLETION_DEADLINE: Final = PREFIX + "completion-deadline"
TTL_AFTER_FINISHED: Final = PREFIX + "ttl-after-finished"
PROGRESS: Final = PREFIX + "progress"
HANG: Final = PREFIX + "hang"
GROUP_ENDED: Final = PREFIX + "group-ended"

# Maintenance of nodes (docs/adr/0023-moves.md): whether the groups of a set are moved off nodes that are closed; on a leader,
# that its group shall leave its nodes now; the key of the taint of nodes to which such a group shall not return meanwhile.
MOVE_OFF_CLOSED_NODES: Final = PREFIX + "move-off-closed-nodes"
MOVE_GROUP: Final = PREFIX + "move-group"
MOVING: Final = PREFIX + "moving"

# The revision history (docs/adr/0012-revision-history.md): the label of a revision that is kept although no group uses
# it, and the annotation of a LeaderWorkerSet that sets how many of them are kept.
HISTORY_OF: Final = PREFIX + "history-of"
REVISION_HISTORY_LIMIT: Final = PREFIX + "revision-history-limit"

# An annotation of a LeaderWorkerSet whose rollout is paused: the previous partition.
PAUSED_PARTITION: Final = PREFIX + "paused-partition"

# An annotation of kubectl's: the change cause, as the user wrote it.
CHANGE_CAUSE: Final = "kubernetes.io/change-cause"

# Annotations of our own: the gang scheduler that a LeaderWorkerSet chooses and its pods are marked for, and the name of
# their group's object.
GANG_SCHEDULER: Final = PREFIX + "gang-scheduler"
GANG_GROUP: Final = PREFIX + "gang-group"

# A scheduling gate of our own: the pod waits until its whole group fits on the nodes.
GANG_GATE: Final = PREFIX + "gang"

# An annotation of the manager's own pods.
CONFIGURATION_HASH: Final = PREFIX + "configuration-hash"

# An annotation of the policy that admits pods, and of its binding: the digest of their spec, as the manager wrote it.
SPEC_DIGEST: Final = PREFIX + "spec-digest"

# Environment variables, in the order of injection (R-ENV-1).
ENV_LEADER_ADDRESS: Final = "LWS_LEADER_ADDRESS"
ENV_GROUP_SIZE: Final = "LWS_GROUP_SIZE"
ENV_WORKER_INDEX: Final = "LWS_WORKER_INDEX"
ENV_GROUP_INDEX: Final = "LWS_GROUP_INDEX"

POD_LABELS: Final = frozenset(
    {NAME, TEMPLATE_REVISION_HASH, GROUP_INDEX, WORKER_INDEX, GROUP_KEY, SUBGROUP_INDEX, SUBGROUP_KEY}
)
"""The pod labels that only controllers and admission set. They are ignored in a pod template."""

POD_ANNOTATIONS: Final = frozenset(
    {
        *(SIZE, LEADER_NAME, LEADER_ADDRESS, SUBGROUP_SIZE, SUBGROUP_POLICY_TYPE, SUBDOMAIN_POLICY, GROUP_IDENTITY),
        *(LEADER_REQUESTS_TPUS, WORKLOAD_AWARE_SCHEDULING, WORKLOAD_NAME, GANG_GROUP, REPLACES, GROUP_ENDED),
        *(IN_PLACE_REVISION, IN_PLACE_STATEFULSET_REVISION, IN_PLACE_REFUSED, IN_PLACE_BEFORE, RESTARTED_IN_PLACE),
        *(FORMER_NODES, FORMER_LEADER, AVOIDED_NODE, MARKED_STARTING, PROGRESS, HANG, MOVE_GROUP),
    }
)
"""The pod annotations that only the controllers and admission set."""

LEADER: Final = "leader"
WORKER: Final = "worker"
"""The values of `ROLE`."""

LEADER_WORKER_INDEX: Final = "0"
"""The value of `WORKER_INDEX` that makes a pod a leader (R-ADM-2)."""

FIELD_MANAGER: Final = "lws"
"""The field manager of server-side apply. If it changed, fields removed from a template would stay (R-LSTS-1)."""

SCALE_MANAGER: Final = "lws-scale"
"""The field manager for scaling. `lws apply` may take over its fields, because the same user wrote both."""

PLACES_MANAGER: Final = "lws-places"
"""The field manager of the nodes in the recreation record. The record's other fields belong to `FIELD_MANAGER`."""

EVENT_REPORTER: Final = "leaderworkerset"
"""`reportingController` of every event (contract 8.3)."""

# The labels and annotations of the ConfigMaps that the recorder keeps episodes in; the label NAME is the other label.
EPISODE: Final = PREFIX + "episode"
EPISODE_GROUP: Final = PREFIX + "episode-group"
EPISODE_NUMBER: Final = PREFIX + "episode-number"
EPISODE_OUTCOME: Final = PREFIX + "episode-outcome"
