"""The leader StatefulSet: its desired state, and how far the live one is (R-LSTS-1 to R-LSTS-5).

In: the LeaderWorkerSet, the key of its revision, the step of the rollout. Out: the object to apply server-side as field
manager `lws`.
"""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset import groupfacts, revisions, templates
from leaderworkerset.core.leaderworkerset.rollingupdate import Budget, Current, RolloutStep


def build(obj: JSONObject, lws: LeaderWorkerSet, *, key: str, limits: Budget, step: RolloutStep) -> JSONObject:
    """Build the leader StatefulSet (R-LSTS-2); `obj` is the LeaderWorkerSet as read, `lws` the same, decoded."""
    own = {labels.NAME: lws.name, labels.TEMPLATE_REVISION_HASH: key}
    return {
        "apiVersion": STATEFULSETS.api_version,
        "kind": STATEFULSETS.kind,
        "metadata": {
            "name": lws.name,
            "namespace": lws.namespace,
            "labels": lws.labels | own,
            "annotations": lws.annotations | {labels.REPLICAS: str(lws.spec.replicas)},
            "ownerReferences": [meta.controller_reference(obj)],
        },
        "spec": {
            "serviceName": lws.name,
            "replicas": step.replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {labels.NAME: lws.name, labels.WORKER_INDEX: labels.LEADER_WORKER_INDEX}},
            "updateStrategy": {
                "type": lws.spec.rollout_strategy.type,
                "rollingUpdate": {"partition": step.partition, "maxUnavailable": limits.max_unavailable},
            },
            "template": _build_template(lws, own),
        }
        | templates.claim_fields(lws.spec.leader_worker_template, lws.namespace),
    }


def current(statefulset: JSONObject | None) -> Current | None:
    """Return the facts that the rollout needs of the leader StatefulSet, if it exists."""
    return None if statefulset is None else position(statefulset)


def position(statefulset: JSONObject) -> Current:
    """Return how far a leader StatefulSet is rolled out."""
    spec = meta.spec(statefulset)
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    return Current(
        replicas=int(spec.get("replicas", 1)),
        partition=int(rolling.get("partition") or 0),
        annotated=meta.annotations(statefulset).get(labels.REPLICAS, ""),
    )


def is_behind(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet was changed since its controller last reported on it.

    A controller that never reported is not waited for: there may be none.
    """
    return bool(meta.status(statefulset).get("observedGeneration")) and not meta.is_observed(statefulset)


def may_create_older(statefulset: JSONObject, key: str) -> bool:
    """Return whether the StatefulSet controller may still create pods of a revision other than `key`.

    It does so below the partition, until it has seen all replicas ready and of the newest revision; where there are to be
    none, all pods gone. A controller that never reported is not waited for: there may be none.
    """
    is_rolled = not is_behind(statefulset) and groupfacts.is_of_one_revision(statefulset)
    return revisions.key_of(statefulset) != key or not is_rolled


def _build_template(lws: LeaderWorkerSet, own: dict[str, str]) -> JSONObject:
    template = lws.spec.leader_worker_template
    annotations = templates.group_annotations(template, lws.annotations)
    if not lws.spec.network_config.subdomain_policy.is_shared:
        annotations[labels.SUBDOMAIN_POLICY] = lws.spec.network_config.subdomain_policy.value
    field = "workerTemplate" if template.leader_template is None else "leaderTemplate"
    return templates.build_pod_template(
        lws.leader_template,
        path=f"{templates.TEMPLATE_PATH}.{field}",
        own_labels=own | {labels.WORKER_INDEX: labels.LEADER_WORKER_INDEX},
        own_annotations=annotations,
    )
