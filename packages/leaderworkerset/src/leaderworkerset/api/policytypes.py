"""Defines the policies that LeaderWorkerSet fields select by name (contract 1.2), and their effects."""

from enum import StrEnum
from typing import Final, assert_never


class StartupPolicy(StrEnum):
    """Defines when the workers of a group are created."""

    LEADER_CREATED = "LeaderCreated"
    LEADER_READY = "LeaderReady"

    @property
    def waits_for_leader(self) -> bool:
        """Return whether workers are created only after their leader is ready."""
        match self:
            case StartupPolicy.LEADER_READY:
                return True
            case StartupPolicy.LEADER_CREATED:
                return False
            case _:
                assert_never(self)


AWAITS_LEADER: Final = f"waits for the leader to be ready (startupPolicy {StartupPolicy.LEADER_READY})"
"""The message for workers that are waiting for their leader."""


class RestartPolicy(StrEnum):
    """The response to a failed pod in a group. `DEFAULT` is the previous name of `NONE`."""

    RECREATE_GROUP_ON_POD_RESTART = "RecreateGroupOnPodRestart"
    RECREATE_GROUP_AFTER_START = "RecreateGroupAfterStart"
    NONE = "None"
    DEFAULT = "Default"

    @property
    def recreates(self) -> bool:
        """Return whether failures can recreate the group (R-POD-3)."""
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
        """Return the current name of a policy, which can be specified by a previous name."""
        match self:
            case RestartPolicy.NONE | RestartPolicy.DEFAULT:
                return RestartPolicy.NONE
            case RestartPolicy.RECREATE_GROUP_ON_POD_RESTART | RestartPolicy.RECREATE_GROUP_AFTER_START:
                return self
            case _:
                assert_never(self)


class SubdomainPolicy(StrEnum):
    """Defines whether all groups share one headless Service, or each group has a separate Service."""

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
    """Defines whether the leader belongs to the first subgroup."""

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
    """The identity of groups, which is an ordinal (leader StatefulSet) or a random key (leader Deployment)."""

    ORDINAL = "Ordinal"
    HASH = "Hash"

    @property
    def is_hash(self) -> bool:
        """Return whether groups have random keys and a leader Deployment."""
        match self:
            case GroupIdentity.HASH:
                return True
            case GroupIdentity.ORDINAL:
                return False
            case _:
                assert_never(self)


class GroupReplacementPolicy(StrEnum):
    """Defines when a replacement group can be scheduled."""

    IMMEDIATE = "Immediate"
    POST_TERMINATION = "PostTermination"

    @property
    def waits_for_termination(self) -> bool:
        """Return whether a replacement waits until the terminating group is deleted."""
        match self:
            case GroupReplacementPolicy.POST_TERMINATION:
                return True
            case GroupReplacementPolicy.IMMEDIATE:
                return False
            case _:
                assert_never(self)


class PodTerminationPolicy(StrEnum):
    """Defines when the workers of a group are terminated, either after the leader or at the same time."""

    DEFAULT = "Default"
    PARALLEL = "Parallel"

    @property
    def is_parallel(self) -> bool:
        """Return whether workers are terminated at the same time as the leader."""
        match self:
            case PodTerminationPolicy.PARALLEL:
                return True
            case PodTerminationPolicy.DEFAULT:
                return False
            case _:
                assert_never(self)


class RolloutStrategyType(StrEnum):
    """Defines how a template change is rolled out."""

    ROLLING_UPDATE = "RollingUpdate"

    @property
    def has_bounds(self) -> bool:
        """Return whether `rollingUpdateConfiguration` limits the rollout."""
        match self:
            case RolloutStrategyType.ROLLING_UPDATE:
                return True
            case _:
                assert_never(self)


# The JSON values for which these properties are true. They are tuples, because a value that cannot be hashed must not
# cause an error.
AWAITING_LEADER: Final = tuple(policy for policy in StartupPolicy if policy.waits_for_leader)
NOT_RECREATING: Final = tuple(policy for policy in RestartPolicy if not policy.recreates)
WITH_OWN_SERVICES: Final = tuple(policy for policy in SubdomainPolicy if not policy.is_shared)
WITHOUT_LEADER: Final = tuple(kind for kind in SubGroupPolicyType if not kind.has_leader)
WITH_RANDOM_KEYS: Final = tuple(identity for identity in GroupIdentity if identity.is_hash)
WITH_PARALLEL_END: Final = tuple(policy for policy in PodTerminationPolicy if policy.is_parallel)
WITH_BOUNDS: Final = tuple(kind for kind in RolloutStrategyType if kind.has_bounds)
