"""Pod and claim templates: the parts that the leader and worker StatefulSets have in common.

In: a template of a LeaderWorkerSet and the labels and annotations that the controllers add; they override the user's.
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
"""The policies that add annotations to pod templates."""

TEMPLATE_PATH: Final = "spec.leaderWorkerTemplate"

KEPT_OF_CLAIMS: Final = frozenset({"accessModes", "storageClassName", "volumeMode", "resources"})
"""The fields of a claim's spec that are passed on. Go's type of `resources` has `requests` and `limits` alone."""

RETAIN: Final = "Retain"
"""The value that the API server sets for an absent retention policy."""


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
    """Return the annotations from which admission reads size, subgroups and exclusive placement of a pod's group.

    `template` is that of the pod's revision; the topology keys come from the LeaderWorkerSet's `live` annotations.
    """
    made = Template(template, live)
    return {key: value for policy in ANNOTATING for key, value in policy.annotations(made).items()}


def claim_fields(template: LeaderWorkerTemplate, namespace: str) -> JSONObject:
    """Return the fields of a StatefulSet's spec about claims; none if the user set none (R-LSTS-5)."""
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
    """Keep of a claim, as Go writes it, what a StatefulSet gets."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim["metadata"].get("name", ""), "namespace": namespace},
        "spec": {name: value for name, value in claim["spec"].items() if name in KEPT_OF_CLAIMS},
    }
