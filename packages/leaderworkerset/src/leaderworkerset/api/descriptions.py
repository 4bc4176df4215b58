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
    ("LeaderWorkerSet", "spec"): "The desired groups.",
    ("LeaderWorkerSet", "status"): "The observed groups.",
    (
        "LeaderWorkerSetSpec",
        "replicas",
    ): "The number of groups. Each group has one leader and its workers. Defaults to 1.",
    ("LeaderWorkerSetSpec", "leaderWorkerTemplate"): "The pod templates and the size of a group.",
    ("LeaderWorkerSetSpec", "rolloutStrategy"): "How groups are updated when the template changes.",
    ("LeaderWorkerSetSpec", "startupPolicy"): (
        "When the workers of a group are created. LeaderCreated (default): when the leader is created. LeaderReady: when"
        " the leader is ready."
    ),
    ("LeaderWorkerSetSpec", "networkConfig"): "The DNS names of pods.",
    ("LeaderWorkerSetSpec", "groupIdentity"): (
        "How groups are identified. Ordinal (default): by index; a StatefulSet creates the leaders. Hash: by random key;"
        " a Deployment creates the leaders. Immutable."
    ),
    ("LeaderWorkerSetSpec", "groupReplacementPolicy"): (
        "When the replacement of a group can be scheduled. PostTermination (default): when all pods of the old group "
        "are deleted. Immediate: without waiting for the old group; requires groupIdentity Hash. A change does not "
        "start a rollout."
    ),
    ("LeaderWorkerSetSpec", "scheduling"): (
        "How kube-scheduler places pods that belong together. It applies to one level: the whole LeaderWorkerSet, each"
        " replica, or each role of a replica. An empty object schedules each replica as a gang. The level is immutable."
    ),
    ("LeaderWorkerSetSpec", "podTerminationPolicy"): (
        "When the workers of a terminating group are terminated. Default: after the leader is deleted. Parallel: at the"
        " same time as the leader. If absent, the annotation pod-termination-policy is used. A change does not start a"
        " rollout."
    ),
    **{
        (struct, field): text
        for struct in ("LeaderWorkerSetScheduling", "ReplicaScheduling", "RoleScheduling")
        for field, text in {
            "schedulingPolicy": "Whether pods are scheduled one by one (basic) or all together (gang).",
            "schedulingConstraints": "Topology constraints for the pods.",
            "disruptionMode": "Whether pods are preempted one by one (single) or all together (all).",
        }.items()
    },
    ("LeaderWorkerSetScheduling", "replica"): "The scheduling of one replica: a leader and its workers.",
    ("ReplicaScheduling", "leader"): "The scheduling of the leader of a replica.",
    ("ReplicaScheduling", "worker"): "The scheduling of the workers of a replica.",
    (
        "RoleScheduling",
        "resourceClaims",
    ): "ResourceClaims that the pods of the role share. The pod template must refer to each.",
    ("WorkloadCompositePodGroupSchedulingPolicy", "basic"): "Pods are scheduled one by one.",
    ("WorkloadCompositePodGroupSchedulingPolicy", "gang"): "Pods are scheduled all together, or not at all.",
    ("WorkloadCompositeGangSchedulingPolicy", "minGroupCount"): (
        "Not supported, because a gang contains all pods of its level."
    ),
    ("WorkloadPodGroupSchedulingPolicy", "basic"): "Pods are scheduled one by one.",
    ("WorkloadPodGroupSchedulingPolicy", "gang"): "Pods are scheduled all together, or not at all.",
    ("WorkloadGangSchedulingPolicy", "minCount"): (
        "The number of pods in the gang. It must equal the number of pods in the role."
    ),
    ("WorkloadSchedulingConstraints", "topology"): "The topology domain in which all pods must run.",
    ("WorkloadTopologyConstraint", "key"): "The node label whose value is the topology domain.",
    ("WorkloadDisruptionMode", "single"): "Pods are preempted one by one.",
    ("WorkloadDisruptionMode", "all"): "Pods are preempted all together.",
    ("WorkloadResourceClaim", "name"): "The name of the claim in the pod template.",
    ("WorkloadResourceClaim", "resourceClaimName"): "The name of an existing ResourceClaim to share.",
    (
        "WorkloadResourceClaim",
        "resourceClaimTemplateName",
    ): "The ResourceClaimTemplate from which the shared ResourceClaim is created.",
    ("LeaderWorkerTemplate", "leaderTemplate"): "The pod template of the leader. If absent, workerTemplate is used.",
    ("LeaderWorkerTemplate", "workerTemplate"): "The pod template of the workers.",
    ("LeaderWorkerTemplate", "size"): "The number of pods in a group, including the leader. Defaults to 1.",
    ("LeaderWorkerTemplate", "restartPolicy"): (
        "The reaction to the restart of a container or the deletion of a pod. RecreateGroupOnPodRestart (default): the"
        " whole group is recreated. RecreateGroupAfterStart: the same, but only if no pod of the group is pending. None:"
        " only the pod is restarted. Default is a deprecated name of None."
    ),
    ("LeaderWorkerTemplate", "subGroupPolicy"): "Divides a group into subgroups. It cannot be added or removed later.",
    ("LeaderWorkerTemplate", "volumeClaimTemplates"): (
        "PersistentVolumeClaims to create for each pod. A container of the pod templates must mount each of them."
    ),
    ("LeaderWorkerTemplate", "persistentVolumeClaimRetentionPolicy"): (
        "Whether PersistentVolumeClaims of volumeClaimTemplates are kept when their pods are deleted."
    ),
    ("LeaderWorkerTemplate", "maxGroupRestarts"): (
        "How often a failed group is recreated, for each revision of the template. After that, the group is terminated"
        " and its pods are kept for diagnosis. Unlimited if absent. A change does not start a rollout."
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
        "The number of pods in a subgroup. It must divide the size of the group, or the size without the leader."
        " Immutable."
    ),
    ("RolloutStrategy", "type"): "The type of rollout. Only RollingUpdate is supported.",
    ("RolloutStrategy", "rollingUpdateConfiguration"): "The limits of a rolling update.",
    ("RollingUpdateConfiguration", "partition"): (
        "Groups with an index below the partition keep the previous template. Defaults to 0."
    ),
    ("RollingUpdateConfiguration", "maxUnavailable"): (
        "The maximum number of groups that can be unavailable during a rollout, or a percentage of replicas, rounded"
        " down. It cannot be 0 if maxSurge is 0. Defaults to 1."
    ),
    ("RollingUpdateConfiguration", "maxSurge"): (
        "The maximum number of groups that can be created above replicas during a rollout, or a percentage of replicas,"
        " rounded up. Defaults to 0."
    ),
    ("NetworkConfig", "subdomainPolicy"): (
        "Whether all groups share one headless Service (Shared, default) or each group has its own (UniquePerReplica)."
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
    ("LeaderWorkerSetStatus", "replicas"): "The number of groups that were created.",
    (
        "LeaderWorkerSetStatus",
        "hpaPodSelector",
    ): "The label selector of the leader pods, for a HorizontalPodAutoscaler.",
    ("LeaderWorkerSetStatus", "observedGeneration"): "The last generation that the controller has observed.",
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
    words = (
        "A LeaderWorkerSet runs groups of pods. Each group has one leader and its workers, and is managed as a unit."
    )
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
