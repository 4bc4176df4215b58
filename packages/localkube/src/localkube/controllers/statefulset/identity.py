"""Defines the identity of a StatefulSet pod: its ordinal, name, labels, host name and template.

Mirrors `stateful_set_utils.go`. The ordinals of a set are `spec.ordinals.start` and the `spec.replicas - 1` that follow.
"""

import re
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.controllers.statefulset import podclaims, revisions

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
REVISION_LABEL: Final = "controller-revision-hash"

POD_NAME = re.compile(r"(.*)-([0-9]+)")
LARGEST_ORDINAL: Final = 2**31 - 1


def desired_replicas(statefulset: JSONObject) -> int:
    """Return `spec.replicas`, or 1 if it is absent."""
    number = meta.spec(statefulset).get("replicas")
    return 1 if number is None else int(number)


def start_ordinal(statefulset: JSONObject) -> int:
    """Return `spec.ordinals.start`, or 0 if it is absent."""
    return int((meta.spec(statefulset).get("ordinals") or {}).get("start") or 0)


def desired_ordinals(statefulset: JSONObject) -> range:
    """Return the desired ordinals of the StatefulSet."""
    start = start_ordinal(statefulset)
    return range(start, start + desired_replicas(statefulset))


def pod_name(statefulset: JSONObject, ordinal: int) -> str:
    """Return the name of the pod with this ordinal."""
    return f"{meta.name(statefulset)}-{ordinal}"


def parse_pod_name(name: str) -> tuple[str, int] | None:
    """Split a pod name into the name of the StatefulSet and the ordinal.

    >>> parse_pod_name("web-0-12"), parse_pod_name("web")
    (('web-0', 12), None)
    """
    match = POD_NAME.fullmatch(name)
    if match is None or int(match[2]) > LARGEST_ORDINAL:
        return None
    return match[1], int(match[2])


def pod_ordinal(pod: JSONObject) -> int:
    """Return the ordinal in the pod name, or -1 if there is none."""
    parts = parse_pod_name(meta.name(pod))
    return parts[1] if parts else -1


def is_member(statefulset: JSONObject, pod: JSONObject) -> bool:
    """Return whether the pod name belongs to this StatefulSet."""
    parts = parse_pod_name(meta.name(pod))
    return parts is not None and parts[0] == meta.name(statefulset)


def pod_revision(pod: JSONObject) -> str:
    """Return the name of the ControllerRevision from which the pod was created."""
    return meta.labels(pod).get(REVISION_LABEL, "")


def identity_labels(statefulset: JSONObject, ordinal: int) -> dict[str, str]:
    """Return the identity labels of the pod."""
    return {POD_NAME_LABEL: pod_name(statefulset, ordinal), POD_INDEX_LABEL: str(ordinal)}


def has_identity(statefulset: JSONObject, pod: JSONObject) -> bool:
    """Return whether the pod still has its identity labels, which users can edit."""
    return meta.labels(pod).get(POD_NAME_LABEL) == pod_name(statefulset, pod_ordinal(pod))


def build_pod(statefulset: JSONObject, revision: JSONObject, ordinal: int) -> JSONObject:
    """Build the pod with this ordinal from the template in the revision."""
    template = revisions.read_template(revision)
    head = meta.metadata(template)
    name = pod_name(statefulset, ordinal)
    labels = meta.labels(template) | identity_labels(statefulset, ordinal) | {REVISION_LABEL: meta.name(revision)}
    metadata = {
        "name": name,
        "generateName": f"{meta.name(statefulset)}-",
        "namespace": meta.namespace(statefulset),
        "labels": labels,
        "ownerReferences": [meta.controller_reference(statefulset)],
    }
    copied = {field: head[field] for field in ("annotations", "finalizers") if head.get(field)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | copied,
        "spec": _spec(statefulset, template, name),
    }


def _spec(statefulset: JSONObject, template: JSONObject, name: str) -> JSONObject:
    spec = meta.spec(template)
    identity = {"hostname": name, "subdomain": meta.spec(statefulset).get("serviceName") or ""}
    volumes = podclaims.pod_volumes(statefulset, name, spec.get("volumes") or [])
    return spec | identity | ({"volumes": volumes} if volumes else {})
