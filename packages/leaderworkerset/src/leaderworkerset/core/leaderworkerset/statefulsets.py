"""Builds the leader StatefulSet, and the common parts of leader and worker StatefulSets (R-LSTS-1 to R-LSTS-5).

Input: the LeaderWorkerSet, its revision key, and the rollout step. Output: the object to apply server-side as field
manager `lws`. This module also contains the parts that it shares with a leader Deployment.

Labels and annotations that the controllers add to a template override those of the user. Templates and claims have
the format of Go's typed structs (R-LSTS-2, R-LSTS-5, R-WSTS-3).
"""

from collections.abc import Collection, Mapping
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.fieldtypes import round_trip
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, LeaderWorkerTemplate
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.cachedapply import without_restart_counts
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutStep
from leaderworkerset.core.policies import exclusive, gang, identity, levels, subgroups, workloadnames
from leaderworkerset.core.policies.policy import Policy, Template

ANNOTATING: Final[tuple[Policy, ...]] = (identity.POLICY, exclusive.POLICY, subgroups.POLICY, gang.POLICY)
"""The policies that add annotations to pod templates."""

TEMPLATE_PATH: Final = "spec.leaderWorkerTemplate"

KEPT_OF_CLAIMS: Final = frozenset({"accessModes", "storageClassName", "volumeMode", "resources"})
"""The copied fields of claim specs. The Go type of `resources` has only `requests` and `limits`."""

RETAIN: Final = "Retain"
"""The API server's default for an absent retention policy."""

NO_MARKS: Final[Mapping[str, str]] = {}


def build(
    obj: JSONObject,
    lws: LeaderWorkerSet,
    *,
    key: str,
    limits: Budget,
    step: RolloutStep,
    marks: Mapping[str, str] = NO_MARKS,
) -> JSONObject:
    """Build the leader StatefulSet (R-LSTS-2). `obj` is the original LeaderWorkerSet, and `lws` is decoded.

    `marks` are additional annotations for the leader template.
    """
    return {
        **STATEFULSETS.type_meta,
        "metadata": build_metadata(obj, lws, key),
        "spec": {
            "serviceName": lws.name,
            "replicas": step.replicas,
            "podManagementPolicy": "Parallel",
            "selector": build_selector(lws),
            "updateStrategy": {
                "type": lws.spec.rollout_strategy.type,
                "rollingUpdate": {
                    "partition": step.partition,
                    "maxUnavailable": limits.max_unavailable,
                },
            },
            "template": build_template(lws, key, marks),
        }
        | claim_fields(lws.spec.leader_worker_template, lws.namespace),
    }


def build_metadata(obj: JSONObject, lws: LeaderWorkerSet, key: str) -> JSONObject:
    """Build the metadata of the leader workload without the restart counts, which change often."""
    return {
        "name": lws.name,
        "namespace": lws.namespace,
        "labels": lws.metadata.labels | _own_labels(lws, key) | {labels.ROLE: labels.LEADER},
        "annotations": without_restart_counts(lws.metadata.annotations) | {labels.REPLICAS: str(lws.spec.replicas)},
        "ownerReferences": [meta.controller_reference(obj)],
    }


def build_selector(lws: LeaderWorkerSet) -> JSONObject:
    """Build the selector of all leaders."""
    return {"matchLabels": groupname.leader_labels(lws.name)}


def _own_labels(lws: LeaderWorkerSet, key: str) -> dict[str, str]:
    return {labels.NAME: lws.name, labels.TEMPLATE_REVISION_HASH: key}


def build_template(lws: LeaderWorkerSet, key: str, marks: Mapping[str, str] = NO_MARKS) -> JSONObject:
    """Build the leader pod template with additional annotations (R-LSTS-4)."""
    template = lws.spec.leader_worker_template
    annotations = group_annotations(template, lws.metadata.annotations) | dict(marks)
    if not lws.spec.network_config.subdomain_policy.is_shared:
        annotations[labels.SUBDOMAIN_POLICY] = lws.spec.network_config.subdomain_policy.value
    if lws.spec.scheduling is not None:
        annotations[labels.WORKLOAD_AWARE_SCHEDULING] = levels.active_level(lws.spec.scheduling).value
        annotations[labels.WORKLOAD_NAME] = workloadnames.workload_name(lws)
    field = "workerTemplate" if template.leader_template is None else "leaderTemplate"
    return build_pod_template(
        lws.leader_template,
        path=f"{TEMPLATE_PATH}.{field}",
        own_labels=_own_labels(lws, key) | {labels.WORKER_INDEX: labels.LEADER_WORKER_INDEX},
        own_annotations=annotations,
    )


def build_pod_template(
    template: JSONObject, *, path: str, own_labels: Mapping[str, str], own_annotations: Mapping[str, str]
) -> JSONObject:
    """Build `spec.template` of a StatefulSet. `path` is the template path in error messages.

    If the template was copied from a running pod, labels and annotations of that pod's group are removed.
    """
    typed = round_trip("PodTemplateSpec", template, path)
    metadata = typed["metadata"]
    return typed | {
        "metadata": metadata
        | {
            "labels": _without_keys(metadata.get("labels"), labels.POD_LABELS) | dict(own_labels),
            "annotations": _without_keys(metadata.get("annotations"), labels.POD_ANNOTATIONS) | dict(own_annotations),
        }
    }


def _without_keys(texts: Mapping[str, str] | None, keys: Collection[str]) -> dict[str, str]:
    return {key: text for key, text in (texts or {}).items() if key not in keys}


def group_annotations(template: LeaderWorkerTemplate, live: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations with the group size, subgroups and exclusive placement for pod admission.

    `template` belongs to the pod's revision. The topology keys come from the LeaderWorkerSet's `live` annotations.
    """
    metadata_template = Template(template, live)
    return {key: value for policy in ANNOTATING for key, value in policy.annotations(metadata_template).items()}


def claim_fields(template: LeaderWorkerTemplate, namespace: str) -> JSONObject:
    """Return the claim fields of a StatefulSet spec, or an empty object if the user set none (R-LSTS-5)."""
    fields: JSONObject = {}
    if template.volume_claim_templates:
        claims = {"volumeClaimTemplates": list(template.volume_claim_templates)}
        typed = round_trip("LeaderWorkerTemplate", claims, TEMPLATE_PATH)["volumeClaimTemplates"]
        fields["volumeClaimTemplates"] = [_reduce_claim(claim, namespace) for claim in typed]
    retention = template.persistent_volume_claim_retention_policy
    if retention is not None:
        fields["persistentVolumeClaimRetentionPolicy"] = {
            "whenDeleted": retention.when_deleted or RETAIN,
            "whenScaled": retention.when_scaled or RETAIN,
        }
    return fields


def _reduce_claim(claim: JSONObject, namespace: str) -> JSONObject:
    """Return the claim fields of a StatefulSet in Go's format."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim["metadata"].get("name", ""), "namespace": namespace},
        "spec": {name: value for name, value in claim["spec"].items() if name in KEPT_OF_CLAIMS},
    }
