"""Defines all labels, annotations and environment variables of the contract (tables 1.4 to 1.6)."""

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

# A Kubernetes label: the StatefulSet revision from which a pod was created.
STATEFULSET_REVISION: Final = "controller-revision-hash"

# A Kueue label: the queue of a LeaderWorkerSet.
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"

# Kueue annotations: the group of a pod serves traffic and never finishes, and a terminated pod is not recreated.
POD_GROUP_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
RETRIABLE_IN_GROUP: Final = "kueue.x-k8s.io/retriable-in-group"

# Kueue scheduling gates, which are removed when quota is available and when the nodes of a topology are assigned.
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

# Kubernetes annotations: the pod deletion cost in ReplicaSets, and the delegation of scheduling to the Workload of an
# owner.
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
GROUP_TEMPLATE_NAME: Final = "scheduling.k8s.io/group-template-name"
PARENT_COMPOSITE_POD_GROUP: Final = "scheduling.k8s.io/parent-compositepodgroup"

# The finalizer of pods whose group exhausted its restarts, the readiness gate of leaders that depend on their
# workers, and the scheduling gate of leaders that may have to wait for the deletion of a previous group.
GROUP_RESTART_BUDGET_CLEANUP: Final = PREFIX + "group-restart-budget-cleanup"
GROUP_READY: Final = PREFIX + "group-ready"
REPLACEMENT_GATE: Final = PREFIX + "group-replacement"

# An annotation of this project: the leader of the group that a new leader replaces.
REPLACES: Final = PREFIX + "replaces"

# Annotations of this project that record the recreations of a group (docs/adr/0003-recreation-backoff.md).
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

# Annotations of this project that configure group recreation in a LeaderWorkerSet (docs/how-to/restarts.md).
RESTART_BACKOFF: Final = PREFIX + "restart-backoff"
RESTART_FIRST_DELAY: Final = PREFIX + "restart-first-delay"
RESTART_LONGEST_DELAY: Final = PREFIX + "restart-longest-delay"
RESTART_RESET_AFTER: Final = PREFIX + "restart-reset-after"
MAX_GROUP_RESTARTS: Final = PREFIX + "max-group-restarts"
RESUME_GROUP_RESTARTS: Final = PREFIX + "resume-group-restarts"
RELEASE_LOST_PODS_AFTER: Final = PREFIX + "release-lost-pods-after"

# Annotations of this project for in-place restarts of all containers: the time limit of a pod, and on a pod, the
# number of restarts (docs/adr/0027-restarts-of-all-containers.md).
IN_PLACE_RESTARTS: Final = PREFIX + "in-place-restarts"
RESTARTED_IN_PLACE: Final = PREFIX + "restarted-in-place"

# Annotations of this project for in-place updates (docs/adr/0024-update-in-place.md): the setting; on a leader, the
# target revision of its group, the corresponding leader StatefulSet revision, and a revision that cannot be reached;
# on a pod, its previous containers, and its desired CPU and memory.
IN_PLACE: Final = PREFIX + "in-place"
IN_PLACE_REVISION: Final = PREFIX + "in-place-revision"
IN_PLACE_STATEFULSET_REVISION: Final = PREFIX + "in-place-statefulset-revision"
IN_PLACE_REFUSED: Final = PREFIX + "in-place-refused"
IN_PLACE_BEFORE: Final = PREFIX + "in-place-before"
IN_PLACE_RESOURCES: Final = PREFIX + "in-place-resources"

# Annotations of this project for the termination of groups and the placement of new ones
# (docs/how-to/places-and-ends.md).
POD_TERMINATION_POLICY: Final = PREFIX + "pod-termination-policy"
STAY_ON_NODES: Final = PREFIX + "stay-on-nodes"

# Annotations of this project: the previous nodes of a group by rank, their leader, and the node to avoid.
FORMER_NODES: Final = PREFIX + "former-nodes"
FORMER_LEADER: Final = PREFIX + "former-leader"
AVOIDED_NODE: Final = PREFIX + "avoided-node"

# An annotation of this project: the number of groups that evictions can make unavailable at the same time
# (docs/how-to/drain.md).
DISRUPTION_BUDGET: Final = PREFIX + "disruption-budget"

# Annotations of this project that protect starting groups from autoscalers, and mark the protected pods.
DO_NOT_DISRUPT: Final = PREFIX + "do-not-disrupt"
MARKED_STARTING: Final = PREFIX + "marked-starting"

# Annotations that prevent Cluster Autoscaler and Karpenter from evicting a pod.
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KARPENTER_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"

# Annotations of this project for progress and completion: the settings of a LeaderWorkerSet, and the reports of its
# leader pods (docs/adr/0026-progress-and-completion.md).
FOLLOW_PROGRESS: Final = PREFIX + "follow-progress"
PROGRESS_TIMEOUT: Final = PREFIX + "progress-timeout"
ON_HANG: Final = PREFIX + "on-hang"
RUN_TO_COMPLETION: Final = PREFIX + "run-to-completion"
COMPLETION_DEADLINE: Final = PREFIX + "completion-deadline"
TTL_AFTER_FINISHED: Final = PREFIX + "ttl-after-finished"
PROGRESS: Final = PREFIX + "progress"
HANG: Final = PREFIX + "hang"
GROUP_ENDED: Final = PREFIX + "group-ended"

# Node maintenance (docs/adr/0023-moves.md): whether the groups of a set are moved from closed nodes; on a leader, the
# request to move its group; the key of the taint on nodes to which such a group must not return during the move.
MOVE_OFF_CLOSED_NODES: Final = PREFIX + "move-off-closed-nodes"
MOVE_GROUP: Final = PREFIX + "move-group"
MOVING: Final = PREFIX + "moving"

# The revision history (docs/adr/0012-revision-history.md): the label of retained revisions that no group uses, and
# the LeaderWorkerSet annotation with the maximum number of these revisions.
HISTORY_OF: Final = PREFIX + "history-of"
REVISION_HISTORY_LIMIT: Final = PREFIX + "revision-history-limit"

# The annotation with the previous partition of a LeaderWorkerSet whose rollout is paused.
PAUSED_PARTITION: Final = PREFIX + "paused-partition"

# The change cause annotation of kubectl, with the user's text.
CHANGE_CAUSE: Final = "kubernetes.io/change-cause"

# Annotations of this project: the gang scheduler of a LeaderWorkerSet and of its pods, and the name of their group
# object.
GANG_SCHEDULER: Final = PREFIX + "gang-scheduler"
GANG_GROUP: Final = PREFIX + "gang-group"

# A scheduling gate of this project: the pod waits until its whole group fits on the nodes.
GANG_GATE: Final = PREFIX + "gang"

# An annotation of the manager's own pods.
CONFIGURATION_HASH: Final = PREFIX + "configuration-hash"

# An annotation of the pod admission policy and its binding: the digest of the spec that the manager wrote.
SPEC_DIGEST: Final = PREFIX + "spec-digest"

# Environment variables, in the order of injection (R-ENV-1).
ENV_LEADER_ADDRESS: Final = "LWS_LEADER_ADDRESS"
ENV_GROUP_SIZE: Final = "LWS_GROUP_SIZE"
ENV_WORKER_INDEX: Final = "LWS_WORKER_INDEX"
ENV_GROUP_INDEX: Final = "LWS_GROUP_INDEX"

POD_LABELS: Final = frozenset(
    {NAME, TEMPLATE_REVISION_HASH, GROUP_INDEX, WORKER_INDEX, GROUP_KEY, SUBGROUP_INDEX, SUBGROUP_KEY}
)
"""The pod labels that only controllers and admission set. They are ignored in pod templates."""

POD_ANNOTATIONS: Final = frozenset(
    {
        *(SIZE, LEADER_NAME, LEADER_ADDRESS, SUBGROUP_SIZE, SUBGROUP_POLICY_TYPE, SUBDOMAIN_POLICY, GROUP_IDENTITY),
        *(LEADER_REQUESTS_TPUS, WORKLOAD_AWARE_SCHEDULING, WORKLOAD_NAME, GANG_GROUP, REPLACES, GROUP_ENDED),
        *(IN_PLACE_REVISION, IN_PLACE_STATEFULSET_REVISION, IN_PLACE_REFUSED, IN_PLACE_BEFORE, RESTARTED_IN_PLACE),
        *(FORMER_NODES, FORMER_LEADER, AVOIDED_NODE, MARKED_STARTING, PROGRESS, HANG, MOVE_GROUP),
    }
)
"""The pod annotations that only controllers and admission set."""

LEADER: Final = "leader"
WORKER: Final = "worker"
"""The possible values of the `ROLE` label."""

LEADER_WORKER_INDEX: Final = "0"
"""The value of `WORKER_INDEX` for leaders (R-ADM-2)."""

FIELD_MANAGER: Final = "lws"
"""The field manager of server-side apply. If its name changed, removed template fields would persist (R-LSTS-1)."""

SCALE_MANAGER: Final = "lws-scale"
"""The field manager for scaling. `lws apply` can take ownership of its fields, because both act for a user."""

PLACES_MANAGER: Final = "lws-places"
"""The field manager of nodes in the recreation record. `FIELD_MANAGER` owns its other fields."""

EVENT_REPORTER: Final = "leaderworkerset"
"""The `reportingController` of all events (contract 8.3)."""

# The labels and annotations of ConfigMaps with recorded episodes. The label NAME is a different label.
EPISODE: Final = PREFIX + "episode"
EPISODE_GROUP: Final = PREFIX + "episode-group"
EPISODE_NUMBER: Final = PREFIX + "episode-number"
EPISODE_OUTCOME: Final = PREFIX + "episode-outcome"
