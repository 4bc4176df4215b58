"""Defines LeaderWorkerSets as frozen structs (contract 1.2 and 1.3), and converts them from and to JSON.

Decoding sets the defaults of the contract, so that the core uses effective values. An absent or null `replicas` is 1,
and an absent `networkConfig` is `Shared`. Fields whose absence has a separate meaning stay None: `leader_template`,
`sub_group_policy`, `scheduling`. Pod and claim templates stay JSON objects, so that none of their fields is lost.
Revisions, which need the exact bytes, are built from the JSON object itself.
"""

import re
from typing import Any, Final, get_args

import msgspec

from kuberuntime.objects.field import FieldError, Kind
from kuberuntime.objects.intstr import IntOrString
from kuberuntime.objects.meta import JSON, UID, JSONObject, ObjectKey
from leaderworkerset.api.policytypes import (
    GroupIdentity,
    GroupReplacementPolicy,
    PodTerminationPolicy,
    RestartPolicy,
    RolloutStrategyType,
    StartupPolicy,
    SubdomainPolicy,
    SubGroupPolicyType,
)
from leaderworkerset.api.schedulinglevels import Scheduling
from leaderworkerset.api.structs import Base, Int32

API_VERSION = "leaderworkerset.x-k8s.io/v1"
KIND = "LeaderWorkerSet"
MAX_REPLICAS = 1_000_000


class SubGroupPolicy(Base, frozen=True, kw_only=True):
    """The `spec.leaderWorkerTemplate.subGroupPolicy` field."""

    sub_group_policy_type: SubGroupPolicyType | None = None
    sub_group_size: Int32 | None = None


class PersistentVolumeClaimRetentionPolicy(Base, frozen=True, kw_only=True):
    """The `spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy` field.

    An absent policy is an empty string.
    """

    when_deleted: str = ""
    when_scaled: str = ""


class LeaderWorkerTemplate(Base, frozen=True, kw_only=True):
    """The `spec.leaderWorkerTemplate` field, which contains the templates and the size of a group."""

    leader_template: JSONObject | None = None
    worker_template: JSONObject = msgspec.field(default_factory=dict)
    size: Int32 = 1
    restart_policy: RestartPolicy = RestartPolicy.RECREATE_GROUP_ON_POD_RESTART
    sub_group_policy: SubGroupPolicy | None = None
    volume_claim_templates: tuple[JSONObject, ...] = ()
    persistent_volume_claim_retention_policy: PersistentVolumeClaimRetentionPolicy | None = None
    max_group_restarts: Int32 | None = None


class RollingUpdateConfiguration(Base, frozen=True, kw_only=True):
    """The `spec.rolloutStrategy.rollingUpdateConfiguration` field."""

    partition: Int32 = 0
    max_unavailable: IntOrString = 1
    max_surge: IntOrString = 0


class RolloutStrategy(Base, frozen=True, kw_only=True):
    """The `spec.rolloutStrategy` field."""

    type: str = RolloutStrategyType.ROLLING_UPDATE.value
    rolling_update_configuration: RollingUpdateConfiguration = RollingUpdateConfiguration()


class NetworkConfig(Base, frozen=True, kw_only=True):
    """The `spec.networkConfig` field."""

    subdomain_policy: SubdomainPolicy = SubdomainPolicy.SHARED


class LeaderWorkerSetSpec(Base, frozen=True, kw_only=True):
    """The `spec` field. If `pod_termination_policy` is absent, an annotation is used, so no default is stored."""

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
    """An entry of `status.conditions`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class LeaderWorkerSetStatus(Base, frozen=True, kw_only=True):
    """The `status` field. Zero counts are omitted in JSON (R-API-10)."""

    conditions: tuple[Condition, ...] = ()
    ready_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    replicas: Int32 = 0
    hpa_pod_selector: str = ""
    observed_generation: int = 0


class ObjectMeta(Base, frozen=True, kw_only=True):
    """The fields of `metadata` that the manager reads or validates."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: UID = UID("")
    generation: int = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: list[JSONObject] = msgspec.field(default_factory=list)
    finalizers: list[str] = msgspec.field(default_factory=list)
    managed_fields: list[JSONObject] = msgspec.field(default_factory=list)


class LeaderWorkerSet(Base, frozen=True, kw_only=True):
    """A LeaderWorkerSet."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()
    status: LeaderWorkerSetStatus = LeaderWorkerSetStatus()

    @property
    def name(self) -> str:
        """Return `metadata.name`."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Return `metadata.namespace`."""
        return self.metadata.namespace

    @property
    def key(self) -> ObjectKey:
        """Return the namespace and name of the object."""
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    @property
    def size(self) -> int:
        """Return the number of pods of one group."""
        return self.spec.leader_worker_template.size

    @property
    def pod_templates(self) -> dict[str, JSONObject]:
        """Return the pod templates by field name. An absent leader template is omitted."""
        template = self.spec.leader_worker_template
        leader = {} if template.leader_template is None else {"leaderTemplate": template.leader_template}
        return leader | {"workerTemplate": template.worker_template}

    @property
    def leader_template(self) -> JSONObject:
        """Return the pod template of leaders, which is the worker template if there is no leader template."""
        template = self.spec.leader_worker_template
        return template.worker_template if template.leader_template is None else template.leader_template


class DecodeError(ValueError):
    """The JSON is not a LeaderWorkerSet, because a field has an invalid type. `error` contains the field."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def decode(obj: JSONObject) -> LeaderWorkerSet:
    """Decode a LeaderWorkerSet. Null fields are treated as absent. A `DecodeError` contains the invalid field."""
    present = _without_nulls(obj, _STRUCTS)
    try:
        return msgspec.convert(present, LeaderWorkerSet)
    except msgspec.ValidationError as error:
        raise DecodeError(field_error(present, str(error))) from error


def encode(leaderworkerset: LeaderWorkerSet) -> JSONObject:
    """Return the JSON object without default values, except for identifying fields."""
    body: JSONObject = msgspec.to_builtins(leaderworkerset, str_keys=True)
    return {"apiVersion": leaderworkerset.api_version, "kind": leaderworkerset.kind} | body


def encode_status(status: LeaderWorkerSetStatus) -> JSONObject:
    """Return `status` as JSON without zero values (R-API-10)."""
    body: JSONObject = msgspec.to_builtins(status, str_keys=True)
    return body


def _structs(struct: type[Base]) -> dict[str, Any]:
    """Return the names of all struct fields, each with its nested struct fields."""
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
    """Convert "Expected `int`, got `str` - at `$.spec.replicas`" to a field error with the invalid value."""
    detail, _, place = text.partition(" - at ")
    path = place.removeprefix("`key` in ").strip("`").removeprefix("$")
    value = obj
    for step in _STEP.finditer(path):
        value = value[step["name"] or int(step["index"])]
    return FieldError(Kind.TYPE_INVALID, path.lstrip(".") or "(root)", value, detail[:1].lower() + detail[1:])
