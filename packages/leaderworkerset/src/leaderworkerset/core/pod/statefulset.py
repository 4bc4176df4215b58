"""Builds the worker StatefulSet of a group (R-WSTS-3, R-WSTS-4).

Input: the current LeaderWorkerSet (`live`), and the LeaderWorkerSet at the leader pod's revision (`revised`). The pod
template comes from the revision, so that a group that is recreated during an update does not change. Values from
metadata (labels, annotations, topology keys) come from the current object.
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset import statefulsets
from leaderworkerset.core.policies import accelerators, gang
from leaderworkerset.core.policies.podedits import non_empty

NOTHING: Final[Mapping[str, str]] = {}

TEMPLATE_PATH: Final = f"{statefulsets.TEMPLATE_PATH}.workerTemplate"


def build(
    live: LeaderWorkerSet,
    revised: LeaderWorkerSet,
    leader: JSONObject,
    node_selector: Mapping[str, str],
    further: Mapping[str, str] = NOTHING,
) -> JSONObject:
    """Build the worker StatefulSet for the group of `leader`. `further` contains additional template annotations."""
    group = groupname.group_labels(leader)
    own = group | _copied_annotations(leader, labels.TEMPLATE_REVISION_HASH)
    metadata = {
        "name": groupname.hostname(leader),
        "namespace": meta.namespace(leader),
        "labels": live.metadata.labels | own | {labels.ROLE: labels.WORKER},
        "annotations": live.metadata.annotations | _termination_annotation(live),
        "ownerReferences": [meta.controller_reference(leader)],
    }
    template = revised.spec.leader_worker_template
    return {
        **STATEFULSETS.type_meta,
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": {
            "replicas": template.size - 1,
            "ordinals": {"start": 1},
            "podManagementPolicy": "Parallel",
            "serviceName": _service_name(revised, leader),
            "selector": {"matchLabels": group},
            "template": _select_nodes(_build_template(live, revised, leader, own, further), node_selector),
        }
        | statefulsets.claim_fields(template, meta.namespace(leader)),
    }


def _termination_annotation(live: LeaderWorkerSet) -> dict[str, str]:
    """Return the annotation with the termination policy for workers of a deleted LeaderWorkerSet (N-PT-2)."""
    policy = live.spec.pod_termination_policy
    return {} if policy is None else {labels.POD_TERMINATION_POLICY: policy.value}


def _service_name(revised: LeaderWorkerSet, leader: JSONObject) -> str:
    """Return the subdomain of the leader or of the revision. A group must not change its Service."""
    is_shared = revised.spec.network_config.subdomain_policy.is_shared
    return meta.spec(leader).get("subdomain") or (revised.name if is_shared else groupname.hostname(leader))


def _build_template(
    live: LeaderWorkerSet,
    revised: LeaderWorkerSet,
    leader: JSONObject,
    own: Mapping[str, str],
    further: Mapping[str, str],
) -> JSONObject:
    template = revised.spec.leader_worker_template
    annotations = statefulsets.group_annotations(template, live.metadata.annotations) | {
        labels.LEADER_NAME: meta.name(leader),
        labels.LEADER_ADDRESS: f"{groupname.hostname(leader)}.{_service_name(revised, leader)}.{meta.namespace(leader)}",
    }
    annotations |= gang.inherited_annotations(leader) | non_empty(meta.annotations(leader), labels.GROUP_IDENTITY)
    annotations |= further
    if accelerators.requests_tpus(meta.spec(leader)):
        annotations[labels.LEADER_REQUESTS_TPUS] = "true"
    return statefulsets.build_pod_template(
        template.worker_template, path=TEMPLATE_PATH, own_labels=own, own_annotations=annotations
    )


def _select_nodes(template: JSONObject, node_selector: Mapping[str, str]) -> JSONObject:
    if not node_selector:
        return template
    spec = template["spec"]
    return template | {"spec": spec | {"nodeSelector": (spec.get("nodeSelector") or {}) | dict(node_selector)}}


def _copied_annotations(pod: JSONObject, *keys: str) -> dict[str, str]:
    return {key: value for key in keys if (value := meta.labels(pod).get(key)) is not None}
