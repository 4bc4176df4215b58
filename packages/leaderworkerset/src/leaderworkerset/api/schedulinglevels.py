"""Defines `spec.scheduling`, which configures the scheduling of groups by kube-scheduler (N-API-10).

It has three levels: the whole LeaderWorkerSet, one replica, and the leader or the workers of a replica. Only the
level whose field is present is active. Absent fields are None.
"""

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.structs import Base, Int32


class CompositeGang(Base, frozen=True, kw_only=True):
    """The gang of a level that contains leaders and workers. All pods of the level are members."""

    min_group_count: Int32 | None = None


class CompositePolicy(Base, frozen=True, kw_only=True):
    """The `schedulingPolicy` of the whole LeaderWorkerSet or of a replica. Exactly one field is set."""

    basic: JSONObject | None = None
    gang: CompositeGang | None = None


class RoleGang(Base, frozen=True, kw_only=True):
    """The gang of leaders or workers. `min_count` must be equal to the number of pods with this role."""

    min_count: Int32 | None = None


class RolePolicy(Base, frozen=True, kw_only=True):
    """The `schedulingPolicy` of leaders or workers. Exactly one field is set."""

    basic: JSONObject | None = None
    gang: RoleGang | None = None


class TopologyConstraint(Base, frozen=True, kw_only=True):
    """A node label with the same value for the nodes of all pods."""

    key: str = ""


class Constraints(Base, frozen=True, kw_only=True):
    """The `schedulingConstraints` field, with at most one topology."""

    topology: tuple[TopologyConstraint, ...] = ()


class DisruptionMode(Base, frozen=True, kw_only=True):
    """The `disruptionMode` field. It defines whether pods are preempted individually. Exactly one field is set."""

    single: JSONObject | None = None
    all: JSONObject | None = None


class ResourceClaim(Base, frozen=True, kw_only=True):
    """A resource claim shared by the pods of a role. Exactly one of the two references is set."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class RoleScheduling(Base, frozen=True, kw_only=True):
    """The `leader` or `worker` field of a replica."""

    scheduling_policy: RolePolicy | None = None
    scheduling_constraints: Constraints | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: tuple[ResourceClaim, ...] = ()


class ReplicaScheduling(Base, frozen=True, kw_only=True):
    """The `replica` field, which contains a leader and its workers, either together or by role."""

    scheduling_policy: CompositePolicy | None = None
    scheduling_constraints: Constraints | None = None
    disruption_mode: DisruptionMode | None = None
    leader: RoleScheduling | None = None
    worker: RoleScheduling | None = None


class Scheduling(Base, frozen=True, kw_only=True):
    """The `spec.scheduling` field, which applies to the whole LeaderWorkerSet or to each replica."""

    scheduling_policy: CompositePolicy | None = None
    scheduling_constraints: Constraints | None = None
    disruption_mode: DisruptionMode | None = None
    replica: ReplicaScheduling | None = None
