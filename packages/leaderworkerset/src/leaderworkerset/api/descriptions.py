"""Adds descriptions for `kubectl explain` to the CRDs (docs/adr/0005-installation.md).

This module describes the fields that LeaderWorkerSets define. The descriptions of pod templates and claims come from
the OpenAPI document of an API server, which is a parameter. Only descriptions are copied, never types. The full and the
slim CRD differ only in descriptions.
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import schema
from leaderworkerset.api.conditions import CONDITIONS
from leaderworkerset.api.fieldtypes import TYPES

DOCUMENT_PATH: Final = "/openapi/v3/api/v1"
"""The path of the OpenAPI document on an API server."""

ROOTS: Final = (
    "io.k8s.api.core.v1.PodTemplateSpec",
    "io.k8s.api.core.v1.PersistentVolumeClaim",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
)
"""The schemas in the document that reference all required schemas, directly or indirectly."""

OWN_ONLY: Final[JSONObject] = {
    "components": {
        "schemas": {
            struct: {"properties": {name: {} for name in ("apiVersion", "kind", *TYPES.fields(struct))}}
            for struct in ("PersistentVolumeClaim", "Condition")
        }
    }
}
"""A document without descriptions. Only the fields of LeaderWorkerSets are then described."""

TEXTS: Final[dict[tuple[str, str], str]] = {
    ("LeaderWorkerSet", "spec"): "The desired state of the LeaderWorkerSet.",
    ("LeaderWorkerSet", "status"): "The observed state of the LeaderWorkerSet.",
    (
        "LeaderWorkerSetSpec",
        "replicas",
    ): "The number of groups. Each group consists of one leader and its workers. Defaults to 1.",
    ("LeaderWorkerSetSpec", "leaderWorkerTemplate"): "The pod templates and the size of each group.",
    ("LeaderWorkerSetSpec", "rolloutStrategy"): "The strategy for updating groups when the template changes.",
    ("LeaderWorkerSetSpec", "startupPolicy"): (
        "Whether the workers of a group are created together with the leader (LeaderCreated, default) or after the"
        " leader is ready (LeaderReady)."
    ),
    ("LeaderWorkerSetSpec", "networkConfig"): "The network configuration, which determines the DNS names of pods.",
    ("LeaderWorkerSetSpec", "groupIdentity"): (
        "Whether groups are identified by index (Ordinal, default) or by random key (Hash). With Ordinal, a StatefulSet"
        " creates the leaders. With Hash, a Deployment creates the leaders. Immutable."
    ),
    ("LeaderWorkerSetSpec", "groupReplacementPolicy"): (
        "Whether a replacement group can be scheduled only after all pods of the old group are deleted (PostTermination,"
        " default) or immediately (Immediate). Immediate requires groupIdentity Hash. A change to this field does not start a"
        " rollout."
    ),
    ("LeaderWorkerSetSpec", "scheduling"): (
        "The scheduling settings for kube-scheduler. They apply to one level: the whole LeaderWorkerSet, each replica,"
        " or each role of a replica. If the object is empty, each replica is scheduled as a gang. The level is immutable."
    ),
    ("LeaderWorkerSetSpec", "podTerminationPolicy"): (
        "Whether the workers of a terminating group are terminated after the leader is deleted (Default) or at the same"
        " time as the leader (Parallel). If the field is not set, the annotation pod-termination-policy applies. A change"
        " to this field does not start a rollout."
    ),
    **{
        (struct, field): text
        for struct in ("LeaderWorkerSetScheduling", "ReplicaScheduling", "RoleScheduling")
        for field, text in {
            "schedulingPolicy": "Whether pods are scheduled one by one (basic) or all together (gang).",
            "schedulingConstraints": "The topology constraints for the pods.",
            "disruptionMode": "Whether pods are preempted one by one (single) or all together (all).",
        }.items()
    },
    (
        "LeaderWorkerSetScheduling",
        "replica",
    ): "The scheduling settings for each replica, which consists of a leader and its workers.",
    ("ReplicaScheduling", "leader"): "The scheduling settings for the leader of each replica.",
    ("ReplicaScheduling", "worker"): "The scheduling settings for the workers of each replica.",
    (
        "RoleScheduling",
        "resourceClaims",
    ): "The ResourceClaims that all pods with this role share. The pod template must refer to each claim.",
    ("WorkloadCompositePodGroupSchedulingPolicy", "basic"): "Pods are scheduled one by one.",
    (
        "WorkloadCompositePodGroupSchedulingPolicy",
        "gang",
    ): "Either all pods are scheduled together, or no pod is scheduled.",
    ("WorkloadCompositeGangSchedulingPolicy", "minGroupCount"): (
        "This field is not supported. A gang always contains all pods of its level."
    ),
    ("WorkloadPodGroupSchedulingPolicy", "basic"): "Pods are scheduled one by one.",
    ("WorkloadPodGroupSchedulingPolicy", "gang"): "Either all pods are scheduled together, or no pod is scheduled.",
    ("WorkloadGangSchedulingPolicy", "minCount"): (
        "The number of pods in the gang. It must be equal to the number of pods with this role."
    ),
    (
        "WorkloadSchedulingConstraints",
        "topology",
    ): "The topology constraint, which requires all pods to run in the same topology domain.",
    ("WorkloadTopologyConstraint", "key"): "The key of the node label that defines the topology domains.",
    ("WorkloadDisruptionMode", "single"): "Pods are preempted one by one.",
    ("WorkloadDisruptionMode", "all"): "All pods are preempted together.",
    ("WorkloadResourceClaim", "name"): "The name of the claim in the pod template.",
    ("WorkloadResourceClaim", "resourceClaimName"): "The name of the existing ResourceClaim that the pods share.",
    (
        "WorkloadResourceClaim",
        "resourceClaimTemplateName",
    ): "The name of the ResourceClaimTemplate from which the shared ResourceClaim is created.",
    (
        "LeaderWorkerTemplate",
        "leaderTemplate",
    ): "The pod template for the leader. If the field is not set, workerTemplate is used.",
    ("LeaderWorkerTemplate", "workerTemplate"): "The pod template for the workers.",
    ("LeaderWorkerTemplate", "size"): "The number of pods in a group, including the leader. Defaults to 1.",
    ("LeaderWorkerTemplate", "restartPolicy"): (
        "Whether the whole group is recreated when a container restarts or a pod is deleted: always"
        " (RecreateGroupOnPodRestart, default), only if none of its pods is pending (RecreateGroupAfterStart), or never"
        " (None). Default is a deprecated alias of None."
    ),
    (
        "LeaderWorkerTemplate",
        "subGroupPolicy",
    ): "The policy that divides each group into subgroups. It cannot be added or removed later.",
    ("LeaderWorkerTemplate", "volumeClaimTemplates"): (
        "The templates of the PersistentVolumeClaims that are created for each pod. In each pod template, the containers"
        " must mount all claims."
    ),
    ("LeaderWorkerTemplate", "persistentVolumeClaimRetentionPolicy"): (
        "Whether the PersistentVolumeClaims from volumeClaimTemplates are kept when a StatefulSet is deleted or scaled"
        " down."
    ),
    ("LeaderWorkerTemplate", "maxGroupRestarts"): (
        "The maximum number of times that a failed group is recreated with the same revision. If the group fails again, it"
        " is terminated, and its pods are kept for diagnosis. If the field is not set, the number is unlimited. A change to"
        " this field does not start a rollout."
    ),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted"): (
        "Whether the claims are kept (Retain, default) or deleted (Delete) when the StatefulSet is deleted."
    ),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenScaled"): (
        "Whether the claims are kept (Retain, default) or deleted (Delete) when the StatefulSet is scaled down."
    ),
    ("SubGroupPolicy", "subGroupPolicyType"): (
        "Whether the leader belongs to the first subgroup (LeaderWorker, default) or to no subgroup (LeaderExcluded)."
    ),
    ("SubGroupPolicy", "subGroupSize"): (
        "The number of pods in a subgroup. The size of the group, or the size without the leader, must be divisible by"
        " this number. Immutable."
    ),
    ("RolloutStrategy", "type"): "The type of the rollout. Only RollingUpdate is supported.",
    ("RolloutStrategy", "rollingUpdateConfiguration"): "The limits of a rolling update.",
    ("RollingUpdateConfiguration", "partition"): (
        "The lowest index of the groups that are updated. Groups with a lower index keep the previous template. Defaults to 0."
    ),
    ("RollingUpdateConfiguration", "maxUnavailable"): (
        "The maximum number or percentage of groups that can be unavailable during a rollout. Percentages are rounded"
        " down. It cannot be 0 if maxSurge is 0. Defaults to 1."
    ),
    ("RollingUpdateConfiguration", "maxSurge"): (
        "The maximum number or percentage of groups that can be created in addition to replicas during a rollout."
        " Percentages are rounded up. Defaults to 0."
    ),
    ("NetworkConfig", "subdomainPolicy"): (
        "Whether all groups share one headless Service (Shared, default) or each group has its own Service (UniquePerReplica)."
    ),
    ("LeaderWorkerSetStatus", "conditions"): (
        f"The conditions of the LeaderWorkerSet. {' '.join(f'{condition.type}: {condition.description}.' for condition in CONDITIONS)}"
    ),
    ("LeaderWorkerSetStatus", "readyReplicas"): (
        "The number of groups whose pods are all ready, regardless of their revision."
    ),
    ("LeaderWorkerSetStatus", "updatedReplicas"): (
        "The number of groups with the latest revision, whether or not they are ready."
    ),
    ("LeaderWorkerSetStatus", "replicas"): "The number of groups that have been created.",
    (
        "LeaderWorkerSetStatus",
        "hpaPodSelector",
    ): "The label selector that a HorizontalPodAutoscaler uses to find the leader pods.",
    ("LeaderWorkerSetStatus", "observedGeneration"): "The most recent generation that the controller has observed.",
}


def with_descriptions(crd: JSONObject, document: JSONObject) -> JSONObject:
    """Return the CRD with descriptions. `document` is the OpenAPI v3 document of the core group."""
    definitions = {name.rsplit(".", 1)[-1]: value for name, value in document["components"]["schemas"].items()}
    (version,) = crd["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    envelope = definitions["PersistentVolumeClaim"]["properties"]
    properties = dict(root["properties"])
    for name in ("apiVersion", "kind"):  # API servers reject descriptions of `metadata`
        properties[name] = _with_description(properties[name], envelope[name].get("description"))
    for name, struct in (("spec", "LeaderWorkerSetSpec"), ("status", "LeaderWorkerSetStatus")):
        child = _describe_fields(root["properties"][name], struct, definitions)
        properties[name] = _with_description(child, TEXTS["LeaderWorkerSet", name])
    words = "A LeaderWorkerSet runs groups of pods. Each group consists of one leader and its workers, and is managed as a unit."
    full = version | {"schema": {"openAPIV3Schema": _with_description(root | {"properties": properties}, words)}}
    return crd | {"spec": crd["spec"] | {"versions": [full]}}


def type_with_descriptions(shape: JSONObject, go_type: str, document: JSONObject) -> JSONObject:
    """Return the schema of a type in the field tables with descriptions."""
    definitions = {name.rsplit(".", 1)[-1]: value for name, value in document["components"]["schemas"].items()}
    return _describe_fields(shape, go_type, definitions)


def with_descriptions_at_paths(root: JSONObject, texts: Mapping[str, str], document: JSONObject) -> JSONObject:
    """Return the root schema of a kind with descriptions. `texts` maps paths (`spec.roles[].name`) to descriptions.

    The descriptions of `apiVersion`, `kind` and conditions come from the OpenAPI document of the core group.
    """
    schemas = {name.rsplit(".", 1)[-1]: value for name, value in document["components"]["schemas"].items()}
    envelope = schemas["PersistentVolumeClaim"]["properties"]
    conditions = schemas["Condition"]["properties"]
    words = {name: envelope[name].get("description") for name in ("apiVersion", "kind")}
    words |= {f"status.conditions[].{name}": field.get("description") for name, field in conditions.items()}
    words |= {"status.conditions[]": schemas["Condition"].get("description")}
    kind, *_ = texts
    return _with_description(_describe_paths(root, "", {**words, **texts}), texts[kind])


def _describe_paths(shape: JSONObject, path: str, description: Mapping[str, str | None]) -> JSONObject:
    """Add descriptions to the fields and items in a schema at `path`."""
    result = dict(shape)
    prefix = f"{path}." if path else ""
    if "properties" in shape:
        result["properties"] = {
            name: _with_description(_describe_paths(child, prefix + name, description), description.get(prefix + name))
            for name, child in shape["properties"].items()
        }
    if "items" in shape:
        result["items"] = _with_description(
            _describe_paths(shape["items"], f"{path}[]", description), description.get(f"{path}[]")
        )
    return result


def _describe_fields(shape: JSONObject, go_type: str, definitions: JSONObject) -> JSONObject:
    """Add descriptions to the fields in a schema that was built from `go_type`."""
    if go_type in schema.SCALARS or go_type == "ObjectMeta":
        return shape
    if go_type.startswith("[]"):
        item = go_type.removeprefix("[]")
        words = definitions.get(item, {}).get("description")
        return shape | {"items": _with_description(_describe_fields(shape["items"], item, definitions), words)}
    if go_type.startswith("map["):
        return shape
    return shape | {
        "properties": {
            name: _with_description(
                _describe_fields(shape["properties"][name], field.type, definitions),
                _field_description(go_type, name, definitions),
            )
            for name, field in TYPES.fields(go_type).items()
        }
    }


def _field_description(struct: str, field: str, definitions: JSONObject) -> str | None:
    """Return the description of a field, or None if there is none."""
    own = TEXTS.get((struct, field))
    if own is not None or struct not in definitions:
        return own
    words: str | None = definitions[struct]["properties"][field].get("description")
    return words


def _with_description(shape: JSONObject, description: str | None) -> JSONObject:
    return shape | {"description": description} if description else shape
