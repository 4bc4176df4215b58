"""The policies that the fields of a LeaderWorkerSet select by name (contract 1.2), and the effects of each policy."""

from enum import StrEnum
from typing import Final, assert_never


class StartupPolicy(StrEnum):
    """When the workers of a group are created."""

    LEADER_CREATED = "LeaderCreated"
    LEADER_READY = "LeaderReady"

    @property
    def awaits_leader(self) -> bool:
        """Return whether workers are created only after their leader is ready."""
        match self:
            case StartupPolicy.LEADER_READY:
                return True
            case StartupPolicy.LEADER_CREATED:
                return False
            case _:
                assert_never(self)


AWAITS_LEADER: Final = f"waits for the leader to be ready (startupPolicy {StartupPolicy.LEADER_READY})"
"""The message about workers that wait for their leader."""


class RestartPolicy(StrEnum):
    """The reaction to a failed pod of a group. `DEFAULT` is an old name of `NONE`."""

    RECREATE_GROUP_ON_POD_RESTART = "RecreateGroupOnPodRestart"
    RECREATE_GROUP_AFTER_START = "RecreateGroupAfterStart"
    NONE = "None"
    DEFAULT = "Default"

    @property
    def recreates(self) -> bool:
        """Return whether a failure ever recreates the group (R-POD-3)."""
        match self:
            case RestartPolicy.RECREATE_GROUP_ON_POD_RESTART | RestartPolicy.RECREATE_GROUP_AFTER_START:
                return True
            case RestartPolicy.NONE | RestartPolicy.DEFAULT:
                return False
            case _:
                assert_never(self)

    @property
    def tolerates_start(self) -> bool:
        """Return whether failures are ignored while the group has pending pods (R-POD-5.2)."""
        match self:
            case RestartPolicy.RECREATE_GROUP_AFTER_START:
                return True
            case RestartPolicy.RECREATE_GROUP_ON_POD_RESTART | RestartPolicy.NONE | RestartPolicy.DEFAULT:
                return False
            case _:
                assert_never(self)

    @property
    def current(self) -> "RestartPolicy":
        """Return the current name of a policy that may have an old name."""
        match self:
            case RestartPolicy.NONE | RestartPolicy.DEFAULT:
                return RestartPolicy.NONE
            case RestartPolicy.RECREATE_GROUP_ON_POD_RESTART | RestartPolicy.RECREATE_GROUP_AFTER_START:
                return self
            case _:
                assert_never(self)


class SubdomainPolicy(StrEnum):
    """Whether all groups share one headless Service, or each group has its own."""

    SHARED = "Shared"
    UNIQUE_PER_REPLICA = "UniquePerReplica"

    @property
    def is_shared(self) -> bool:
        """Return whether all groups share one Service."""
        match self:
            case SubdomainPolicy.SHARED:
                return True
            case SubdomainPolicy.UNIQUE_PER_REPLICA:
                return False
            case _:
                assert_never(self)


class SubGroupPolicyType(StrEnum):
    """Whether the leader is a member of the first subgroup."""

    LEADER_WORKER = "LeaderWorker"
    LEADER_EXCLUDED = "LeaderExcluded"

    @property
    def has_leader(self) -> bool:
        """Return whether the leader belongs to the first subgroup."""
        match self:
            case SubGroupPolicyType.LEADER_WORKER:
                return True
            case SubGroupPolicyType.LEADER_EXCLUDED:
                return False
            case _:
                assert_never(self)


class GroupIdentity(StrEnum):
    """How groups are identified: by the ordinals of a leader StatefulSet, or by random keys of a leader Deployment."""

    ORDINAL = "Ordinal"
    HASH = "Hash"

    @property
    def is_hash(self) -> bool:
        """Return whether groups have random keys, and their leaders belong to a Deployment."""
        match self:
            case GroupIdentity.HASH:
                return True
            case GroupIdentity.ORDINAL:
                return False
            case _:
                assert_never(self)


class GroupReplacementPolicy(StrEnum):
    """When the replacement of a group may be scheduled."""

    IMMEDIATE = "Immediate"
    POST_TERMINATION = "PostTermination"

    @property
    def awaits_termination(self) -> bool:
        """Return whether a replacement waits until the terminating group is deleted."""
        match self:
            case GroupReplacementPolicy.POST_TERMINATION:
                return True
            case GroupReplacementPolicy.IMMEDIATE:
                return False
            case _:
                assert_never(self)


class PodTerminationPolicy(StrEnum):
    """When the workers of a group terminate: after their leader, or together with it."""

    DEFAULT = "Default"
    PARALLEL = "Parallel"

    @property
    def is_parallel(self) -> bool:
        """Return whether the workers terminate together with their leader."""
        match self:
            case PodTerminationPolicy.PARALLEL:
                return True
            case PodTerminationPolicy.DEFAULT:
                return False
            case _:
                assert_never(self)


class RolloutStrategyType(StrEnum):
    """How a new template is rolled out."""

    ROLLING_UPDATE = "RollingUpdate"

    @property
    def has_bounds(self) -> bool:
        """Return whether `rollingUpdateConfiguration` limits the rollout."""
        match self:
            case RolloutStrategyType.ROLLING_UPDATE:
                return True
            case _:
                assert_never(self)


# The values with which these questions are answered from JSON. They are tuples: a value that cannot be hashed is not an error.
AWAITING_LEADER: Final = tuple(policy for policy in StartupPolicy if policy.awaits_leader)
NOT_RECREATING: Final = tuple(policy for policy in RestartPolicy if not policy.recreates)
WITH_OWN_SERVICES: Final = tuple(policy for policy in SubdomainPolicy if not policy.is_shared)
WITHOUT_LEADER: Final = tuple(kind for kind in SubGroupPolicyType if not kind.has_leader)
WITH_RANDOM_KEYS: Final = tuple(identity for identity in GroupIdentity if identity.is_hash)
WITH_PARALLEL_END: Final = tuple(policy for policy in PodTerminationPolicy if policy.is_parallel)
WITH_BOUNDS: Final = tuple(kind for kind in RolloutStrategyType if kind.has_bounds)
