"""Pod and claim templates of the StatefulSets: what leader and worker sets have in common.

In: a template of a LeaderWorkerSet and the labels and annotations that the controllers add; they win over the user's.
Out: the template as the StatefulSet gets it, in the form that Go's typed structs have (R-LSTS-2, R-LSTS-5, R-WSTS-3).
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.fieldtypes import round_trip
from leaderworkerset.api.leaderworkerset import LeaderWorkerTemplate
from leaderworkerset.core.policies import exclusive, gang, identity, subgroups
from leaderworkerset.core.policies.policy import Policy, Template

ANNOTATING: Final[tuple[Policy, ...]] = (identity.POLICY, exclusive.POLICY, subgroups.POLICY, gang.POLICY)
"""The policies that pod templates carry something for."""

RETAIN: Final = "Retain"
"""What the API server makes of an unset retention policy."""


def build_pod_template(
    template: JSONObject, *, path: str, own_labels: Mapping[str, str], own_annotations: Mapping[str, str]
) -> JSONObject:
    """Build `spec.template` of a StatefulSet; `path` names the template in errors."""
    typed = round_trip("PodTemplateSpec", template, path)
    metadata = typed["metadata"]
    return typed | {
        "metadata": metadata
        | {
            "labels": (metadata.get("labels") or {}) | dict(own_labels),
            "annotations": (metadata.get("annotations") or {}) | dict(own_annotations),
        }
    }


def group_annotations(template: LeaderWorkerTemplate, live: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations by which admission knows the group of a pod: size, subgroups and exclusive placement.

    `template` is that of the pod's revision; the topology keys come from the LeaderWorkerSet's `live` annotations.
    """
    made = Template(template, live)
    return {key: value for policy in ANNOTATING for key, value in policy.annotations(made).items()}


def claim_fields(template: LeaderWorkerTemplate, namespace: str) -> JSONObject:
    """Return the fields of a StatefulSet's spec that concern claims; none where the user set none (R-LSTS-5)."""
    fields: JSONObject = {}
    if template.volume_claim_templates:
        fields["volumeClaimTemplates"] = [
            _reduce_claim(claim, namespace, f"spec.leaderWorkerTemplate.volumeClaimTemplates[{i}]")
            for i, claim in enumerate(template.volume_claim_templates)
        ]
    retention = template.persistent_volume_claim_retention_policy
    if retention is not None:
        fields["persistentVolumeClaimRetentionPolicy"] = {
            "whenDeleted": retention.when_deleted or RETAIN,
            "whenScaled": retention.when_scaled or RETAIN,
        }
    return fields


def _reduce_claim(claim: JSONObject, namespace: str, path: str) -> JSONObject:
    typed = round_trip("PersistentVolumeClaim", claim, path)
    spec = typed["spec"]
    kept = {field: spec[field] for field in ("accessModes", "storageClassName", "volumeMode") if field in spec}
    resources = {field: spec["resources"][field] for field in ("requests", "limits") if field in spec["resources"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": typed["metadata"].get("name", ""), "namespace": namespace},
        "spec": kept | {"resources": resources},
    }
