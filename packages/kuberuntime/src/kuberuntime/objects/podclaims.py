"""Finds the volume claims of a pod, including claims for generic ephemeral volumes.

The claim of an ephemeral volume is named `POD-VOLUME`, and its controller is the pod (component-helpers,
`ephemeral_templates.go`).
"""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject


def claims_by_volume(pod: JSONObject) -> dict[str, str]:
    """Return the names of the pod's claims by volume name.

    >>> volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "b", "ephemeral": {}}]
    >>> claims_by_volume({"metadata": {"name": "web-0"}, "spec": {"volumes": volumes}})
    {'a': 'c', 'b': 'web-0-b'}
    """
    volumes = meta.spec(pod).get("volumes") or []
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes
        if volume.get("persistentVolumeClaim")
    }
    return claims | {name: f"{meta.name(pod)}-{name}" for name in ephemeral_templates(pod)}


def ephemeral_templates(pod: JSONObject) -> dict[str, JSONObject]:
    """Return the claim templates of the pod's ephemeral volumes by volume name."""
    volumes = meta.spec(pod).get("volumes") or []
    return {
        volume["name"]: volume["ephemeral"].get("volumeClaimTemplate") or {}
        for volume in volumes
        if volume.get("ephemeral") is not None
    }


def is_claim_of_pod(claim: JSONObject, pod_uid: str) -> bool:
    """Return whether a claim was created for an ephemeral volume of this pod."""
    controller = meta.controller_of(claim)
    return controller is not None and controller.get("uid") == pod_uid
