"""Builds the OpenAPI schema of the LeaderWorkerSet types for the CRD.

Types are defined in the field tables (`fieldtypes`). The tables in this module add optional fields that Go always
writes, defaults (R-API-7), keys of lists (R-API-8), atomic objects, and the validation rules of LeaderWorkerSet
fields (contract 1.2). Schemas are shared, so do not modify the result.
"""

from enum import StrEnum
from functools import lru_cache

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.fieldtypes import TYPES
from leaderworkerset.api.leaderworkerset import MAX_REPLICAS
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

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
INT_OR_STRING: JSONObject = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

SCALARS: dict[str, JSONObject] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "time": {"type": "string", "format": "date-time"},
    "int-or-string": INT_OR_STRING,
    "quantity": INT_OR_STRING | {"pattern": QUANTITY_PATTERN},
}

STRING_MAP: JSONObject = {"type": "object", "additionalProperties": {"type": "string"}}
EMBEDDED_METADATA: JSONObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": STRING_MAP,
        "annotations": STRING_MAP,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
"""The metadata schema of templates (R-API-5). Other fields are pruned."""

OPTIONAL = {
    ("GRPCAction", "service"),
    ("LeaderWorkerSetSpec", "startupPolicy"),
    ("ProjectedVolumeSource", "sources"),
    ("TypedLocalObjectReference", "apiGroup"),
    ("TypedObjectReference", "apiGroup"),
}
"""The optional fields that Go always writes."""

REQUIRED = {
    ("ContainerRestartRule", "action"),
    ("ContainerRestartRuleOnExitCodes", "operator"),
    ("PodCertificateProjection", "keyType"),
    ("PodCertificateProjection", "signerName"),
}
"""The required fields that Go omits if they are empty."""

ATOMIC = {
    "ConfigMapKeySelector",
    "FileKeySelector",
    "LabelSelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ResourceFieldSelector",
    "SecretKeySelector",
    "TypedLocalObjectReference",
}
"""The objects that are atomic in server-side apply."""

LIST_KEYS = {
    "Condition": ("type",),
    "Container": ("name",),
    "ContainerPort": ("containerPort", "protocol"),
    "EnvVar": ("name",),
    "EphemeralContainer": ("name",),
    "HostAlias": ("ip",),
    "LocalObjectReference": ("name",),
    "PersistentVolumeClaimCondition": ("type",),
    "PodResourceClaim": ("name",),
    "PodSchedulingGate": ("name",),
    "ResourceClaim": ("name",),
    "TopologySpreadConstraint": ("topologyKey", "whenUnsatisfiable"),
    "Volume": ("name",),
    "VolumeDevice": ("devicePath",),
    "VolumeMount": ("mountPath",),
    "WorkloadResourceClaim": ("name",),
}
"""The map keys of lists with items of this type. Other lists are atomic."""


def _enum(values: type[StrEnum]) -> JSONObject:
    return {"enum": sorted(value.value for value in values)}


RULES: dict[tuple[str, str], JSONObject] = {
    ("AzureDiskVolumeSource", "fsType"): {"default": "ext4"},
    ("AzureDiskVolumeSource", "readOnly"): {"default": False},
    ("ConfigMapEnvSource", "name"): {"default": ""},
    ("ConfigMapKeySelector", "name"): {"default": ""},
    ("ConfigMapProjection", "name"): {"default": ""},
    ("ConfigMapVolumeSource", "name"): {"default": ""},
    ("ContainerPort", "protocol"): {"default": "TCP"},
    ("ContainerRestartRuleOnExitCodes", "values"): {"x-kubernetes-list-type": "set"},
    ("FileKeySelector", "optional"): {"default": False},
    ("GRPCAction", "service"): {"default": ""},
    ("ISCSIVolumeSource", "iscsiInterface"): {"default": "default"},
    ("LocalObjectReference", "name"): {"default": ""},
    ("RBDVolumeSource", "keyring"): {"default": "/etc/ceph/keyring"},
    ("RBDVolumeSource", "pool"): {"default": "rbd"},
    ("RBDVolumeSource", "user"): {"default": "admin"},
    ("ScaleIOVolumeSource", "fsType"): {"default": "xfs"},
    ("ScaleIOVolumeSource", "storageMode"): {"default": "ThinProvisioned"},
    ("SecretEnvSource", "name"): {"default": ""},
    ("SecretKeySelector", "name"): {"default": ""},
    ("SecretProjection", "name"): {"default": ""},
    ("Condition", "message"): {"maxLength": 32768},
    ("Condition", "observedGeneration"): {"minimum": 0},
    ("Condition", "reason"): {
        "minLength": 1,
        "maxLength": 1024,
        "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    },
    ("Condition", "status"): {"enum": ["True", "False", "Unknown"]},
    ("Condition", "type"): {
        "maxLength": 316,
        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    },
    ("LeaderWorkerSetSpec", "replicas"): {"default": 1, "minimum": 0, "maximum": MAX_REPLICAS},
    ("LeaderWorkerSetSpec", "startupPolicy"): {"default": "LeaderCreated"} | _enum(StartupPolicy),
    ("LeaderWorkerSetSpec", "groupIdentity"): {"default": "Ordinal"} | _enum(GroupIdentity),
    ("LeaderWorkerSetSpec", "groupReplacementPolicy"): {"default": "PostTermination"} | _enum(GroupReplacementPolicy),
    ("LeaderWorkerSetSpec", "podTerminationPolicy"): _enum(PodTerminationPolicy),
    ("LeaderWorkerTemplate", "maxGroupRestarts"): {"minimum": 0},
    ("LeaderWorkerTemplate", "size"): {"default": 1},
    ("LeaderWorkerTemplate", "restartPolicy"): {"default": "RecreateGroupOnPodRestart"} | _enum(RestartPolicy),
    ("NetworkConfig", "subdomainPolicy"): _enum(SubdomainPolicy),
    ("RoleScheduling", "resourceClaims"): {"maxItems": 4},
    ("RolloutStrategy", "type"): {"default": "RollingUpdate"} | _enum(RolloutStrategyType),
    ("RollingUpdateConfiguration", "partition"): {"default": 0},
    ("RollingUpdateConfiguration", "maxUnavailable"): {"default": 1},
    ("RollingUpdateConfiguration", "maxSurge"): {"default": 0},
    ("SubGroupPolicy", "subGroupPolicyType"): {"default": "LeaderWorker"} | _enum(SubGroupPolicyType),
    ("WorkloadGangSchedulingPolicy", "minCount"): {"minimum": 1},
    ("WorkloadSchedulingConstraints", "topology"): {"maxItems": 1},
}
"""The validation rules of a field in addition to its type."""


@lru_cache(maxsize=256)
def schema_of(go_type: str) -> JSONObject:
    """Return the schema of a type in Go notation, which is a scalar, `[]T`, `map[string]T` or a struct.

    >>> schema_of("[]string")
    {'type': 'array', 'items': {'type': 'string'}, 'x-kubernetes-list-type': 'atomic'}
    """
    if go_type in SCALARS:
        return SCALARS[go_type]
    if go_type == "ObjectMeta":
        return EMBEDDED_METADATA
    if go_type.startswith("[]"):
        return _list_schema(go_type.removeprefix("[]"))
    if go_type.startswith("map["):
        return {"type": "object", "additionalProperties": schema_of(go_type.removeprefix("map[string]"))}
    return _struct_schema(go_type)


def _list_schema(item: str) -> JSONObject:
    schema: JSONObject = {"type": "array", "items": schema_of(item)}
    if item in LIST_KEYS:
        return schema | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(LIST_KEYS[item])}
    return schema | {"x-kubernetes-list-type": "atomic"}


def _struct_schema(struct: str) -> JSONObject:
    fields = TYPES.fields(struct)
    schema: JSONObject = {
        "type": "object",
        "properties": {name: schema_of(field.type) | RULES.get((struct, name), {}) for name, field in fields.items()},
    }
    required = sorted(
        name
        for name, field in fields.items()
        if (struct, name) in REQUIRED or not (field.omit_empty or (struct, name) in OPTIONAL)
    )
    if required:
        schema["required"] = required
    if struct in ATOMIC:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema
