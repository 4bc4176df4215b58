"""The descriptions of the full definition, which `kubectl explain` shows (docs/adr/0005-installation.md).

The own fields of LeaderWorkerSets are described here. The fields of pod templates and claims are described by the API
server whose OpenAPI document is the parameter. Only descriptions are taken from there, never types: the full and the
slim definition differ in nothing else.
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
"""The definitions of the document from which all needed definitions can be reached."""

OWN_ONLY: Final[JSONObject] = {
    "components": {
        "schemas": {
            struct: {"properties": {name: {} for name in ("apiVersion", "kind", *TYPES.fields(struct))}}
            for struct in ("PersistentVolumeClaim", "Condition")
        }
    }
}
"""A document without texts, for use without an API server: it only describes the own fields of LeaderWorkerSets."""

TEXTS: Final[dict[tuple[str, str], str]] = {
    ("LeaderWorkerSet", "spec"): "The desired groups.",
    ("LeaderWorkerSet", "status"): "The running groups, as last observed by the controller.",
    ("LeaderWorkerSetSpec", "replicas"): "The desired number of groups of one leader and its workers. Defaults to 1.",
    ("LeaderWorkerSetSpec", "leaderWorkerTemplate"): "The pods of one group. A change of it is rolled out.",
    ("LeaderWorkerSetSpec", "rolloutStrategy"): "How a changed template reaches the groups.",
    ("LeaderWorkerSetSpec", "startupPolicy"): (
        "When the workers of a group are created: once its leader is created (LeaderCreated, the default), or once it"
        " is ready (LeaderReady)."
    ),
    ("LeaderWorkerSetSpec", "networkConfig"): "How pods find each other by name.",
    ("LeaderWorkerSetSpec", "groupIdentity"): (
        "The identity of groups: an ordinal, with leaders of a StatefulSet (Ordinal, the default), or a random"
        " key, with leaders of a Deployment (Hash). It cannot be changed."
    ),
    ("LeaderWorkerSetSpec", "groupReplacementPolicy"): (
        "When the replacement of a group may be scheduled: once a group that ends is gone (PostTermination, the"
        " default), or at once (Immediate, for groupIdentity Hash alone). A change of it rolls nothing out."
    ),
    ("LeaderWorkerSetSpec", "scheduling"): (
        "How kube-scheduler places pods that belong together, at one level: the whole LeaderWorkerSet, each replica, or"
        " each role of a replica. The level cannot be changed; an empty object means replicas as gangs."
    ),
    ("LeaderWorkerSetSpec", "podTerminationPolicy"): (
        "When the workers of a group that ends are terminated: once their leader is gone (Default), or together with it"
        " (Parallel). Where absent, the annotation pod-termination-policy counts. A change of it rolls nothing out."
    ),
    **{
        (struct, field): text
        for struct in ("LeaderWorkerSetScheduling", "ReplicaScheduling", "RoleScheduling")
        for field, text in {
            "schedulingPolicy": "Whether the pods of the level are scheduled one by one (basic) or all or none (gang).",
            "schedulingConstraints": "The labels that the nodes of the level's pods share.",
            "disruptionMode": "Whether the scheduler preempts pods of the level one by one (single) or together (all).",
        }.items()
    },
    ("LeaderWorkerSetScheduling", "replica"): "The level of one replica: a leader with its workers.",
    ("ReplicaScheduling", "leader"): "The level of the leader of a replica.",
    ("ReplicaScheduling", "worker"): "The level of the workers of a replica.",
    (
        "RoleScheduling",
        "resourceClaims",
    ): "Claims that the pods of the role share; their template must also refer to each.",
    ("WorkloadCompositePodGroupSchedulingPolicy", "basic"): "Pods are scheduled one by one.",
    ("WorkloadCompositePodGroupSchedulingPolicy", "gang"): "All pods are scheduled, or none.",
    ("WorkloadCompositeGangSchedulingPolicy", "minGroupCount"): "Not supported: a gang has all pods of its level.",
    ("WorkloadPodGroupSchedulingPolicy", "basic"): "Pods are scheduled one by one.",
    ("WorkloadPodGroupSchedulingPolicy", "gang"): "All pods are scheduled, or none.",
    ("WorkloadGangSchedulingPolicy", "minCount"): "How many pods the gang has; only all pods of the role are possible.",
    ("WorkloadSchedulingConstraints", "topology"): "The topology domain that all pods share; at most one.",
    ("WorkloadTopologyConstraint", "key"): "The label of nodes that names their topology domain.",
    ("WorkloadDisruptionMode", "single"): "Pods are preempted one by one.",
    ("WorkloadDisruptionMode", "all"): "Pods are preempted together.",
    ("WorkloadResourceClaim", "name"): "The name of the claim in the pod template.",
    ("WorkloadResourceClaim", "resourceClaimName"): "The ResourceClaim that is shared.",
    (
        "WorkloadResourceClaim",
        "resourceClaimTemplateName",
    ): "The ResourceClaimTemplate that the shared claim is made of.",
    ("LeaderWorkerTemplate", "leaderTemplate"): "The template of leader pods; where absent, workerTemplate is theirs.",
    ("LeaderWorkerTemplate", "workerTemplate"): "The template of worker pods.",
    ("LeaderWorkerTemplate", "size"): "How many pods a group has, its leader included. Defaults to 1.",
    ("LeaderWorkerTemplate", "restartPolicy"): (
        "The effect of a failed pod on its group: the whole group is recreated (RecreateGroupOnPodRestart, the"
        " default), likewise but not before all its pods have run (RecreateGroupAfterStart), or nothing (None)."
        " Default is an old spelling of None."
    ),
    ("LeaderWorkerTemplate", "subGroupPolicy"): (
        "Parts the pods of a group into subgroups, which can be placed together; it cannot be added or removed later."
    ),
    ("LeaderWorkerTemplate", "volumeClaimTemplates"): (
        "Claims that every pod gets for itself; each must be mounted by a container of the pod templates."
    ),
    ("LeaderWorkerTemplate", "persistentVolumeClaimRetentionPolicy"): (
        "Whether the claims created from volumeClaimTemplates are kept when pods are deleted or scaled down."
    ),
    ("LeaderWorkerTemplate", "maxGroupRestarts"): (
        "How often a group is recreated after failures, at one revision of the template, before it is left terminated;"
        " unlimited where absent. A change of it rolls nothing out."
    ),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted"): (
        "Retain (the default) keeps the claims when the StatefulSet is deleted, Delete deletes them."
    ),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenScaled"): (
        "Retain (the default) keeps the claims of pods that are scaled down, Delete deletes them."
    ),
    ("SubGroupPolicy", "subGroupPolicyType"): (
        "Whether the leader belongs to the first subgroup (LeaderWorker, the default) or to none (LeaderExcluded)."
    ),
    ("SubGroupPolicy", "subGroupSize"): (
        "How many pods a subgroup has. It must divide the size of the group, or the size without the leader, and"
        " cannot be changed."
    ),
    ("RolloutStrategy", "type"): "How groups are replaced; RollingUpdate is the only way.",
    ("RolloutStrategy", "rollingUpdateConfiguration"): "The bounds of a rolling update.",
    ("RollingUpdateConfiguration", "partition"): "Groups of a lower index keep the old template. Defaults to 0.",
    ("RollingUpdateConfiguration", "maxUnavailable"): (
        "How many groups may be unavailable during a rollout, as a number or a percentage of replicas, rounded down;"
        " it cannot be 0 while maxSurge is. Defaults to 1."
    ),
    ("RollingUpdateConfiguration", "maxSurge"): (
        "How many groups may run beyond replicas during a rollout, as a number or a percentage of replicas, rounded"
        " up. Defaults to 0."
    ),
    ("NetworkConfig", "subdomainPolicy"): (
        "Whether all groups share one headless service (Shared, the default) or each group has its own"
        " (UniquePerReplica)."
    ),
    ("LeaderWorkerSetStatus", "conditions"): (
        f"The conditions of the LeaderWorkerSet. {' '.join(f'{condition.type}: {condition.description}.' for condition in CONDITIONS)}"
    ),
    ("LeaderWorkerSetStatus", "readyReplicas"): "Groups of which all pods are ready, at any revision of the template.",
    ("LeaderWorkerSetStatus", "updatedReplicas"): "Groups at the newest revision of the template, ready or not.",
    ("LeaderWorkerSetStatus", "replicas"): "Groups that were created.",
    ("LeaderWorkerSetStatus", "hpaPodSelector"): (
        "The selector of the pods that a HorizontalPodAutoscaler measures: the leaders."
    ),
    ("LeaderWorkerSetStatus", "observedGeneration"): "The generation of the spec that this status describes.",
}


def described(crd: JSONObject, document: JSONObject) -> JSONObject:
    """Return the definition with descriptions; `document` is the OpenAPI v3 document of the core group."""
    definitions = {name.rsplit(".", 1)[-1]: value for name, value in document["components"]["schemas"].items()}
    (version,) = crd["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    envelope = definitions["PersistentVolumeClaim"]["properties"]
    properties = dict(root["properties"])
    for name in ("apiVersion", "kind"):  # an API server refuses a description of `metadata`
        properties[name] = _with(properties[name], envelope[name].get("description"))
    for name, struct in (("spec", "LeaderWorkerSetSpec"), ("status", "LeaderWorkerSetStatus")):
        child = _describe(root["properties"][name], struct, definitions)
        properties[name] = _with(child, TEXTS["LeaderWorkerSet", name])
    words = "A LeaderWorkerSet runs groups of pods, each of one leader and its workers, as units."
    full = version | {"schema": {"openAPIV3Schema": _with(root | {"properties": properties}, words)}}
    return crd | {"spec": crd["spec"] | {"versions": [full]}}


def described_type(shape: JSONObject, go_type: str, document: JSONObject) -> JSONObject:
    """Return the schema of a type of the field tables with descriptions."""
    definitions = {name.rsplit(".", 1)[-1]: value for name, value in document["components"]["schemas"].items()}
    return _describe(shape, go_type, definitions)


def with_texts(root: JSONObject, texts: Mapping[str, str], document: JSONObject) -> JSONObject:
    """Return the root schema of a kind with descriptions by path (`spec.roles[].name`), its own first.

    The descriptions of `apiVersion`, `kind` and conditions come from the OpenAPI document of the core group.
    """
    schemas = {name.rsplit(".", 1)[-1]: value for name, value in document["components"]["schemas"].items()}
    envelope = schemas["PersistentVolumeClaim"]["properties"]
    conditions = schemas["Condition"]["properties"]
    words = {name: envelope[name].get("description") for name in ("apiVersion", "kind")}
    words |= {f"status.conditions[].{name}": field.get("description") for name, field in conditions.items()}
    words |= {"status.conditions[]": schemas["Condition"].get("description")}
    kind, *_ = texts
    return _with(_with_paths(root, "", {**words, **texts}), texts[kind])


def _with_paths(shape: JSONObject, path: str, words: Mapping[str, str | None]) -> JSONObject:
    """Describe the fields and items below a schema whose path is `path`."""
    result = dict(shape)
    prefix = f"{path}." if path else ""
    if "properties" in shape:
        result["properties"] = {
            name: _with(_with_paths(child, prefix + name, words), words.get(prefix + name))
            for name, child in shape["properties"].items()
        }
    if "items" in shape:
        result["items"] = _with(_with_paths(shape["items"], f"{path}[]", words), words.get(f"{path}[]"))
    return result


def _describe(shape: JSONObject, go_type: str, definitions: JSONObject) -> JSONObject:
    """Describe the fields below a schema that was built from `go_type`."""
    if go_type in schema.SCALARS or go_type == "ObjectMeta":
        return shape
    if go_type.startswith("[]"):
        item = go_type.removeprefix("[]")
        words = definitions.get(item, {}).get("description")
        return shape | {"items": _with(_describe(shape["items"], item, definitions), words)}
    if go_type.startswith("map["):
        return shape
    return shape | {
        "properties": {
            name: _with(
                _describe(shape["properties"][name], field.type, definitions),
                _words(go_type, name, definitions),
            )
            for name, field in TYPES.fields(go_type).items()
        }
    }


def _words(struct: str, field: str, definitions: JSONObject) -> str | None:
    """Return the description of a field, None if there is none."""
    own = TEXTS.get((struct, field))
    if own is not None or struct not in definitions:
        return own
    words: str | None = definitions[struct]["properties"][field].get("description")
    return words


def _with(shape: JSONObject, words: str | None) -> JSONObject:
    return shape | {"description": words} if words else shape
