"""Manages the revision history of a Deployment.

It consists of ReplicaSets with revision numbers, one of which has the current template.

Mirrors `getNewReplicaSet`, `SetNewReplicaSetAnnotations` and `cleanupDeployment` of kube-controller-manager.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from localkube.controllers.deployment import sizes
from localkube.controllers.templatehash import template_hash

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
FORMER: Final = "deployment.kubernetes.io/revision-history"
FORMER_LIMIT: Final = 2000
"""The maximum length of the annotation with the previous revision numbers of a ReplicaSet, in characters."""

NOT_COPIED: Final = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    FORMER,
    sizes.DESIRED,
    sizes.MOST,
}
LONGEST_NAME: Final = 253
UNLIMITED: Final = 2**31 - 1


def find_new(deployment: JSONObject, sets: Iterable[JSONObject]) -> JSONObject | None:
    """Return the oldest ReplicaSet with the Deployment's template, or None if it does not exist yet."""
    template = meta.spec(deployment)["template"]
    return next((replicaset for replicaset in sizes.by_age(sets) if read_template(replicaset) == template), None)


def read_template(replicaset: JSONObject) -> JSONObject:
    """Return the template of a ReplicaSet without the hash label, as in the Deployment."""
    template: JSONObject = meta.spec(replicaset)["template"]
    labels = {name: value for name, value in meta.labels(template).items() if name != HASH_LABEL}
    return template | {"metadata": meta.metadata(template) | {"labels": labels}}


def build(deployment: JSONObject, collisions: int) -> JSONObject:
    """Build a ReplicaSet from the Deployment's template, without replicas and annotations."""
    spec = meta.spec(deployment)
    template, selector = spec["template"], spec["selector"]
    digest = template_hash(template, collisions)
    label = {HASH_LABEL: digest}
    labels = meta.labels(template) | label
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta.name(deployment)[: LONGEST_NAME - len(digest) - 1]}-{digest}",
            "namespace": meta.namespace(deployment),
            "labels": labels,
            "ownerReferences": [meta.controller_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": selector | {"matchLabels": (selector.get("matchLabels") or {}) | label},
            "template": template | {"metadata": meta.metadata(template) | {"labels": labels}},
        },
    }


def new_annotations(deployment: JSONObject, new: JSONObject, old: Iterable[JSONObject]) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet: the Deployment's annotations, and the highest revision number."""
    copied = {name: value for name, value in meta.annotations(deployment).items() if name not in NOT_COPIED}
    annotations = meta.annotations(new) | copied
    number = max((revision_number(replicaset) for replicaset in old), default=0) + 1
    if revision_number(new) >= number or decimals.integer(annotations.get(REVISION, "0")) is None:
        return annotations
    return annotations | _previous_revisions(annotations) | {REVISION: str(number)}


def revision_number(replicaset: JSONObject) -> int:
    """Return the revision number of a ReplicaSet, or 0 if it is absent."""
    return decimals.integer(meta.annotations(replicaset).get(REVISION, "")) or 0


def obsolete(deployment: JSONObject, old: Iterable[JSONObject]) -> Sequence[JSONObject]:
    """Return the oldest ReplicaSets above the history limit that have no pods."""
    limit = int(meta.spec(deployment)["revisionHistoryLimit"])
    alive = sorted(
        sizes.by_age(replicaset for replicaset in old if not meta.is_deleting(replicaset)), key=revision_number
    )
    surplus = alive[: max(0, len(alive) - limit)] if limit < UNLIMITED else []
    return [replicaset for replicaset in surplus if _is_empty(replicaset)]


def _is_empty(replicaset: JSONObject) -> bool:
    pods = sizes.desired_size(replicaset) or meta.status(replicaset).get("replicas")
    return not pods and meta.is_observed(replicaset)


def _previous_revisions(annotations: dict[str, str]) -> dict[str, str]:
    """Add the current number to the annotation with previous numbers. If it is too long, drop the oldest numbers."""
    if REVISION not in annotations:
        return {}
    numbers = [number for number in annotations.get(FORMER, "").split(",") if number] + [annotations[REVISION]]
    while len(text := ",".join(numbers)) > FORMER_LIMIT:
        numbers = numbers[1:]
    return {FORMER: text}
