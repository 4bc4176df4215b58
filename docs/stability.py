"""Defines the stability levels of fields, annotations, commands and feature gates.

Names that are not listed here have the class of their kind: fields in the recorded types of LeaderWorkerSet v0.10 are
stable, and so are its labels, annotations, flags and metrics. A test finds names without a class.
"""
# ruff: noqa: INP001 - part of the scripts beside it

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.api.usersettings import SETTINGS


class Class(StrEnum):
    """A guarantee about changes."""

    STABLE = "stable"
    BETA = "beta"
    ALPHA = "alpha"
    INTERNAL = "internal"


PROMISES: Final[Mapping[Class, str]] = {
    Class.STABLE: "The meaning of the interface does not change. Removal requires a new major version, and a deprecation period of at least one year and two minor versions.",
    Class.BETA: "The interface is kept for at least two minor versions after its deprecation. The log, the command or the changelog announces the deprecation.",
    Class.ALPHA: "The interface is disabled by default, and can change in any minor version. The changelog lists each change.",
    Class.INTERNAL: "Only the manager reads and writes the data. The previous and the next version of the manager can also use the data. Do not use the data in other tools.",
}

FIELDS: Final[Mapping[str, Class]] = {
    "LeaderWorkerSetSpec.groupIdentity": Class.BETA,
    "LeaderWorkerSetSpec.groupReplacementPolicy": Class.BETA,
    "LeaderWorkerSetSpec.podTerminationPolicy": Class.ALPHA,
    "LeaderWorkerSetSpec.scheduling": Class.ALPHA,
    "LeaderWorkerTemplate.maxGroupRestarts": Class.BETA,
}
"""The fields that are not in v0.10."""

PLACES: Final = {"LeaderWorkerSetSpec": "spec", "LeaderWorkerTemplate": "spec.leaderWorkerTemplate"}
"""The paths of the types that contain such fields."""

CHOSEN: Final = (*(row.annotation for row in SETTINGS if row.is_ours), labels.RECOVER)
"""The annotations of this project that users set on a LeaderWorkerSet or a leader pod."""

KEPT: Final = (
    labels.GROUP_IDENTITY,
    labels.LEADER_ADDRESS,
    labels.ROLE,
    labels.SCHEDULING_LEVEL,
    labels.WORKLOAD_AWARE_SCHEDULING,
    labels.WORKLOAD_NAME,
    labels.GROUP_RESTART_COUNTS,
    labels.GROUP_RESTART_BUDGET_EXHAUSTED,
    labels.GROUP_RESTART_BUDGET_CLEANUP,
    labels.GROUP_READY,
    labels.REPLACEMENT_GATE,
    labels.REPLACES,
    labels.RECREATIONS,
    labels.RECREATED_LEADER,
    labels.RECREATE_AFTER,
    labels.RESTARTS_USED,
    labels.RECREATION_STATE,
    labels.FAILED_POD,
    labels.FAILED_POD_UID,
    labels.FAILED_POD_RESTARTS,
    labels.FAILURE,
    labels.LONGEST_FAILED_RUN,
    labels.FAILURE_ORIGIN,
    labels.DELETED_AT,
    labels.RESUMED,
    labels.MARKED_STARTING,
    labels.RESTARTED_IN_PLACE,
    labels.IN_PLACE_REVISION,
    labels.IN_PLACE_STATEFULSET_REVISION,
    labels.IN_PLACE_REFUSED,
    labels.IN_PLACE_BEFORE,
    labels.IN_PLACE_RESOURCES,
    labels.FORMER_NODES,
    labels.FORMER_LEADER,
    labels.AVOIDED_NODE,
    labels.MOVE_GROUP,
    labels.MOVING,
    labels.HISTORY_OF,
    labels.PAUSED_PARTITION,
    labels.GANG_GROUP,
    labels.GANG_GATE,
    labels.CONFIGURATION_HASH,
    labels.SPEC_DIGEST,
    labels.PROGRESS,
    labels.HANG,
    labels.GROUP_ENDED,
    labels.EPISODE,
    labels.EPISODE_GROUP,
    labels.EPISODE_NUMBER,
    labels.EPISODE_OUTCOME,
)
"""The labels, annotations, gates and finalizers that the manager uses internally."""

UPSTREAM: Final = (
    labels.NAME,
    labels.TEMPLATE_REVISION_HASH,
    labels.GROUP_INDEX,
    labels.WORKER_INDEX,
    labels.GROUP_KEY,
    labels.SUBGROUP_INDEX,
    labels.SUBGROUP_KEY,
    labels.SIZE,
    labels.REPLICAS,
    labels.LEADER_NAME,
    labels.EXCLUSIVE_TOPOLOGY,
    labels.SUBGROUP_EXCLUSIVE_TOPOLOGY,
    labels.SUBGROUP_SIZE,
    labels.SUBGROUP_POLICY_TYPE,
    labels.SUBDOMAIN_POLICY,
    labels.LEADER_REQUESTS_TPUS,
    labels.RECREATE_GROUP_AFTER_START,
)
"""The names of LeaderWorkerSet v0.10."""

NEW_COMMANDS: Final = ("dashboard", "history", "recover", "schema")
"""The commands whose options and output can still change. All other commands are stable."""

GATES: Final[Mapping[str, tuple[Class, str]]] = {
    "WorkloadAwareScheduling": (
        Class.ALPHA,
        "Enables `spec.scheduling`. With this field, kube-scheduler 1.37 schedules all pods of a group together.",
    ),
}
"""The feature gates, with their purposes."""
