"""The LeaderWorkerSet as frozen structs (contract 1.2 and 1.3), and their conversion from and to JSON.

Decoding fills in the defaults of the contract, so that the core uses effective values: an absent or null `replicas` is
1, an absent `networkConfig` is `Shared`. Fields whose absence has a separate meaning stay None: `leader_template`,
`sub_group_policy`, `scheduling`. Pod and claim templates stay JSON objects, so that none of their fields is lost.
Revisions, which need the exact bytes, are built from the JSON object itself.
"""

import re
from enum import StrEnum
from typing import Any, Final, assert_never, get_args

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, Kind
from kuberuntime.objects.intstr import IntOrString
from kuberuntime.objects.meta import JSON, UID, JSONObject, ObjectKey
from leaderworkerset.api.schedulinglevels import Scheduling
from leaderworkerset.api.structs import Base, Int32

API_VERSION = "leaderworkerset.x-k8s.io/v1"
KIND = "LeaderWorkerSet"
MAX_REPLICAS = 1_000_000


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
"""The text about workers that wait for their leader."""


class RestartPolicy(StrEnum):
    """The reaction to a failed pod of a group. `DEFAULT` is an old spelling of `NONE`."""

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
        """Return whether failures do not count while the group has pending pods (R-POD-5.2)."""
        match self:
            case RestartPolicy.RECREATE_GROUP_AFTER_START:
                return True
            case RestartPolicy.RECREATE_GROUP_ON_POD_RESTART | RestartPolicy.NONE | RestartPolicy.DEFAULT:
                return False
            case _:
                assert_never(self)

    @property
    def current(self) -> "RestartPolicy":
        """Return the current spelling of a policy with an old one."""
        match self:
            case RestartPolicy.NONE | RestartPolicy.DEFAULT:
                return RestartPolicy.NONE
            case RestartPolicy.RECREATE_GROUP_ON_POD_RESTART | RestartPolicy.RECREATE_GROUP_AFTER_START:
                return self
            case _:
                assert_never(self)


class SubdomainPolicy(StrEnum):
    """Whether all groups share one headless service, or each group has its own."""

    SHARED = "Shared"
    UNIQUE_PER_REPLICA = "UniquePerReplica"

    @property
    def is_shared(self) -> bool:
        """Return whether there is one service for all groups."""
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
    """The identity of groups: the ordinals of a StatefulSet's leaders, or random keys of a Deployment's."""

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
        """Return whether a replacement waits until the ending group is deleted."""
        match self:
            case GroupReplacementPolicy.POST_TERMINATION:
                return True
            case GroupReplacementPolicy.IMMEDIATE:
                return False
            case _:
                assert_never(self)


class PodTerminationPolicy(StrEnum):
    """The time at which the workers of a group end: after their leader, or with it."""

    DEFAULT = "Default"
    PARALLEL = "Parallel"

    @property
    def is_parallel(self) -> bool:
        """Return whether the workers end together with their leader."""
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
        """Return whether `rollingUpdateConfiguration` bounds the rollout."""
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


class SubGroupPolicy(Base, frozen=True, kw_only=True):
    """`spec.leaderWorkerTemplate.subGroupPolicy`."""

    sub_group_policy_type: SubGroupPolicyType | None = None
    sub_group_size: Int32 | None = None


class PersistentVolumeClaimRetentionPolicy(Base, frozen=True, kw_only=True):
    """`spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy`; an unset key is empty."""

    when_deleted: str = ""
    when_scaled: str = ""


class LeaderWorkerTemplate(Base, frozen=True, kw_only=True):
    """`spec.leaderWorkerTemplate`: the templates and size of a group."""

    leader_template: JSONObject | None = None
    worker_template: JSONObject = msgspec.field(default_factory=dict)
    size: Int32 = 1
    restart_policy: RestartPolicy = RestartPolicy.RECREATE_GROUP_ON_POD_RESTART
    sub_group_policy: SubGroupPolicy | None = None
    volume_claim_templates: tuple[JSONObject, ...] = ()
    persistent_volume_claim_retention_policy: PersistentVolumeClaimRetentionPolicy | None = None
    max_group_restarts: Int32 | None = None


class RollingUpdateConfiguration(Base, frozen=True, kw_only=True):
    """`spec.rolloutStrategy.rollingUpdateConfiguration`."""

    partition: Int32 = 0
    max_unavailable: IntOrString = 1
    max_surge: IntOrString = 0


class RolloutStrategy(Base, frozen=True, kw_only=True):
    """`spec.rolloutStrategy`."""

    type: str = RolloutStrategyType.ROLLING_UPDATE.value
    rolling_update_configuration: RollingUpdateConfiguration = RollingUpdateConfiguration()


class NetworkConfig(Base, frozen=True, kw_only=True):
    """`spec.networkConfig`."""

    subdomain_policy: SubdomainPolicy = SubdomainPolicy.SHARED


class LeaderWorkerSetSpec(Base, frozen=True, kw_only=True):
    """`spec`. Without `pod_termination_policy` an annotation counts, so that no default is stored."""

    replicas: Int32 = 1
    startup_policy: StartupPolicy = StartupPolicy.LEADER_CREATED
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    rollout_strategy: RolloutStrategy = RolloutStrategy()
    network_config: NetworkConfig = NetworkConfig()
    group_identity: GroupIdentity = GroupIdentity.ORDINAL
    group_replacement_policy: GroupReplacementPolicy = GroupReplacementPolicy.POST_TERMINATION
    scheduling: Scheduling | None = None
    pod_termination_policy: PodTerminationPolicy | None = None


class Condition(Base, frozen=True, kw_only=True):
    """One entry of `status.conditions`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class LeaderWorkerSetStatus(Base, frozen=True, kw_only=True):
    """`status`; zero counts are absent on the wire (R-API-10)."""

    conditions: tuple[Condition, ...] = ()
    ready_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    replicas: Int32 = 0
    hpa_pod_selector: str = ""
    observed_generation: int = 0


class LeaderWorkerSet(Base, frozen=True, kw_only=True):
    """A LeaderWorkerSet. `metadata` stays a JSON object; the properties read it."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: JSONObject = msgspec.field(default_factory=dict)
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()
    status: LeaderWorkerSetStatus = LeaderWorkerSetStatus()

    @property
    def name(self) -> str:
        """Return `metadata.name`."""
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """Return `metadata.namespace`."""
        return str(self.metadata.get("namespace") or "")

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def uid(self) -> UID:
        """Return `metadata.uid`."""
        return meta.uid({"metadata": self.metadata})

    @property
    def generation(self) -> int:
        """Return `metadata.generation`, 0 if absent."""
        return meta.generation({"metadata": self.metadata})

    @property
    def labels(self) -> dict[str, str]:
        """Return `metadata.labels`."""
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        """Return `metadata.annotations`."""
        return self.metadata.get("annotations") or {}

    @property
    def is_deleting(self) -> bool:
        """Return whether the object carries a deletion timestamp."""
        return meta.is_deleting({"metadata": self.metadata})

    @property
    def size(self) -> int:
        """Return the number of pods of one group."""
        return self.spec.leader_worker_template.size

    @property
    def rolling_update(self) -> RollingUpdateConfiguration:
        """Return the rolling update settings."""
        return self.spec.rollout_strategy.rolling_update_configuration

    @property
    def leader_template(self) -> JSONObject:
        """Return the pod template of leaders: the leader template, or the worker template if there is none."""
        template = self.spec.leader_worker_template
        return template.worker_template if template.leader_template is None else template.leader_template


class DecodeError(ValueError):
    """The JSON is not a LeaderWorkerSet: a field has the wrong type; `error` names it."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def decode(obj: JSONObject) -> LeaderWorkerSet:
    """Read a LeaderWorkerSet; null means absent. Raise a `DecodeError` that names the field of a wrong type."""
    present = _without_nulls(obj, _STRUCTS)
    try:
        return msgspec.convert(present, LeaderWorkerSet)
    except msgspec.ValidationError as error:
        raise DecodeError(field_error(present, str(error))) from error


def encode(leaderworkerset: LeaderWorkerSet) -> JSONObject:
    """Return the JSON object without default values, except for fields that identify the object."""
    body: JSONObject = msgspec.to_builtins(leaderworkerset, str_keys=True)
    return {"apiVersion": leaderworkerset.api_version, "kind": leaderworkerset.kind} | body


def encode_status(status: LeaderWorkerSetStatus) -> JSONObject:
    """Return `status` in its wire form, without zero values (R-API-10)."""
    body: JSONObject = msgspec.to_builtins(status, str_keys=True)
    return body


def _structs(struct: type[Base]) -> dict[str, Any]:
    """Return the names of the fields that are structs, each with the struct fields below it."""
    return {
        field.encode_name: _structs(part)
        for field in msgspec.structs.fields(struct)
        for part in (field.type, *get_args(field.type))
        if isinstance(part, type) and issubclass(part, Base)
    }


_STRUCTS: Final = {"metadata": {}} | _structs(LeaderWorkerSet)


def _without_nulls(value: JSON, structs: dict[str, Any]) -> JSON:
    if not isinstance(value, dict):
        return value
    return {
        name: _without_nulls(child, structs[name]) if name in structs else child
        for name, child in value.items()
        if child is not None
    }


_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>[0-9]+)\]")


def field_error(obj: JSON, text: str) -> FieldError:
    """Convert "Expected `int`, got `str` - at `$.spec.replicas`" into a field error with the invalid value."""
    detail, _, place = text.partition(" - at ")
    path = place.removeprefix("`key` in ").strip("`").removeprefix("$")
    value = obj
    for step in _STEP.finditer(path):
        value = value[step["name"] or int(step["index"])]
    return FieldError(Kind.TYPE_INVALID, path.lstrip(".") or "(root)", value, detail[:1].lower() + detail[1:])
