"""Defines DisaggregatedSets as frozen structs (R-DS-3, R-DS-5), with their labels and annotations (R-DS-15).

Absent optional fields are None, because the contract distinguishes an absent field from 0. For example, an absent
`rollingUpdateConfiguration` means a surge of 1. Pod templates and role metadata are JSON objects. The revision and
the LeaderWorkerSets are built from the original object.
"""

from enum import StrEnum
from typing import Final, assert_never

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.intstr import IntOrString
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from leaderworkerset.api.leaderworkerset import Condition, DecodeError, field_error
from leaderworkerset.api.policytypes import GroupReplacementPolicy, PodTerminationPolicy
from leaderworkerset.api.structs import Base, Int32

API_VERSION: Final = "disaggregatedset.x-k8s.io/v1"
KIND: Final = "DisaggregatedSet"

PREFIX: Final = "disaggregatedset.x-k8s.io/"

# Labels of LeaderWorkerSets, pods, services and role scalers.
SET_NAME: Final = PREFIX + "name"
ROLE: Final = PREFIX + "role"
SLICE: Final = PREFIX + "slice"
REVISION: Final = PREFIX + "revision"
APP: Final = "app"

INITIAL_REPLICAS: Final = PREFIX + "initial-replicas"
"""A LeaderWorkerSet annotation with the number of groups before the current rollout."""

MIN_ROLES: Final = 2
MAX_ROLES: Final = 10
MAX_SLICES: Final = 100


class ScalingMode(StrEnum):
    """The source of the number of groups of a role, which is `spec.replicas` or its DisaggregatedSetRoleScaler."""

    STATIC = "Static"
    EXTERNAL = "External"

    @property
    def is_external(self) -> bool:
        """Return whether a scaler sets the number of groups."""
        match self:
            case ScalingMode.EXTERNAL:
                return True
            case ScalingMode.STATIC:
                return False
            case _:
                assert_never(self)


EXTERNAL: Final = tuple(mode for mode in ScalingMode if mode.is_external)


def has_scaler(role: JSONObject) -> bool:
    """Return whether a scaler sets the number of groups of a role."""
    return (role.get("scaling") or {}).get("mode") in EXTERNAL


class PlacementType(StrEnum):
    """Defines whether each slice or each DisaggregatedSet has separate topology domains."""

    NONE = "None"
    EXCLUSIVE_SLICE = "ExclusiveSlice"
    EXCLUSIVE_TOPOLOGY = "ExclusiveTopology"

    @property
    def excludes_sets(self) -> bool:
        """Return whether the topology domain of a slice also excludes pods of other DisaggregatedSets."""
        match self:
            case PlacementType.EXCLUSIVE_TOPOLOGY:
                return True
            case PlacementType.EXCLUSIVE_SLICE | PlacementType.NONE:
                return False
            case _:
                assert_never(self)

    @property
    def is_exclusive(self) -> bool:
        """Return whether affinity terms are added to pods."""
        match self:
            case PlacementType.EXCLUSIVE_SLICE | PlacementType.EXCLUSIVE_TOPOLOGY:
                return True
            case PlacementType.NONE:
                return False
            case _:
                assert_never(self)


class Scaling(Base, frozen=True, kw_only=True):
    """The `spec.roles[].scaling` field."""

    mode: ScalingMode | None = None


class RoleRollingUpdate(Base, frozen=True, kw_only=True):
    """The `spec.roles[].spec.rolloutStrategy.rollingUpdateConfiguration` field."""

    partition: Int32 | None = None
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class RoleRolloutStrategy(Base, frozen=True, kw_only=True):
    """The `spec.roles[].spec.rolloutStrategy` field."""

    type: str | None = None
    rolling_update_configuration: RoleRollingUpdate | None = None


class RoleSpec(Base, frozen=True, kw_only=True):
    """The `spec.roles[].spec` field.

    It is a LeaderWorkerSet spec with only the fields that a DisaggregatedSet uses.
    """

    replicas: Int32 | None = None
    rollout_strategy: RoleRolloutStrategy | None = None
    leader_worker_template: JSONObject | None = None
    group_replacement_policy: GroupReplacementPolicy | None = None
    pod_termination_policy: PodTerminationPolicy | None = None


class RoleMetadata(Base, frozen=True, kw_only=True):
    """The `spec.roles[].metadata` field. It contains the labels and annotations of the role's LeaderWorkerSets."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Role(Base, frozen=True, kw_only=True):
    """An entry of `spec.roles`."""

    name: str = ""
    scaling: Scaling | None = None
    metadata: RoleMetadata | None = None
    spec: RoleSpec | None = None

    @property
    def is_external(self) -> bool:
        """Return whether a role scaler sets the number of groups."""
        mode = None if self.scaling is None else self.scaling.mode
        return mode is not None and mode.is_external

    @property
    def replicas(self) -> int:
        """Return the number of groups per slice in the spec, which is used if there is no scaler (R-DS-25)."""
        return 1 if self.spec is None or self.spec.replicas is None else self.spec.replicas

    @property
    def replacement_policy(self) -> GroupReplacementPolicy:
        """Return the policy that defines when a replacement group can be scheduled.

        It applies only to groups with random keys.
        """
        policy = None if self.spec is None else self.spec.group_replacement_policy
        return policy or GroupReplacementPolicy.POST_TERMINATION

    @property
    def termination_policy(self) -> PodTerminationPolicy | None:
        """Return the pod termination policy, or None if an annotation specifies it."""
        return None if self.spec is None else self.spec.pod_termination_policy

    @property
    def rolling_update(self) -> RoleRollingUpdate | None:
        """Return the rolling update configuration, or None if it is absent."""
        strategy = None if self.spec is None else self.spec.rollout_strategy
        return None if strategy is None else strategy.rolling_update_configuration


class PlacementPolicy(Base, frozen=True, kw_only=True):
    """The `spec.placementPolicy` field."""

    type: PlacementType | None = None
    topology: str | None = None

    @property
    def is_exclusive(self) -> bool:
        """Return whether affinity terms are added to pods."""
        return self.type is not None and self.type.is_exclusive


class DisaggregatedSetSpec(Base, frozen=True, kw_only=True):
    """The `spec` field of a DisaggregatedSet."""

    roles: tuple[Role, ...] | None = None
    slices: Int32 | None = None
    placement_policy: PlacementPolicy | None = None


class RoleStatus(Base, frozen=True, kw_only=True):
    """An entry of `status.roleStatuses`. Zero counts are omitted in JSON."""

    name: str = ""
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0


class DisaggregatedSetStatus(Base, frozen=True, kw_only=True):
    """The `status` field of a DisaggregatedSet."""

    observed_generation: int = 0
    role_statuses: tuple[RoleStatus, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class DisaggregatedSet(Base, frozen=True, kw_only=True):
    """A DisaggregatedSet. `metadata` is a JSON object, which the properties read."""

    metadata: JSONObject | None = None
    spec: DisaggregatedSetSpec | None = None
    status: DisaggregatedSetStatus | None = None

    @property
    def key(self) -> ObjectKey:
        """Return the namespace and name of the object."""
        return meta.key({"metadata": self.metadata})

    @property
    def name(self) -> str:
        """Return `metadata.name`."""
        return self.key.name

    @property
    def uid(self) -> UID:
        """Return `metadata.uid`."""
        return meta.uid({"metadata": self.metadata})

    @property
    def generation(self) -> int:
        """Return `metadata.generation`."""
        return meta.generation({"metadata": self.metadata})

    @property
    def roles(self) -> tuple[Role, ...]:
        """Return the roles in the order of the spec."""
        return () if self.spec is None else self.spec.roles or ()

    @property
    def slices(self) -> int:
        """Return the number of slices. Each slice contains all roles."""
        return 1 if self.spec is None or self.spec.slices is None else self.spec.slices

    @property
    def placement(self) -> PlacementPolicy:
        """Return the placement policy. If it is absent, return a policy without a type."""
        return (None if self.spec is None else self.spec.placement_policy) or PlacementPolicy()


def decode(obj: JSONObject) -> DisaggregatedSet:
    """Decode a DisaggregatedSet. Null fields are treated as absent. A `DecodeError` contains the invalid field."""
    present = {name: obj[name] for name in ("metadata", "spec", "status") if name in obj}
    try:
        return msgspec.convert(present, DisaggregatedSet)
    except msgspec.ValidationError as error:
        raise DecodeError(field_error(present, str(error))) from error


def encode_status(status: DisaggregatedSetStatus) -> JSONObject:
    """Return `status` as JSON without zero values."""
    body: JSONObject = msgspec.to_builtins(status, str_keys=True)
    return body
