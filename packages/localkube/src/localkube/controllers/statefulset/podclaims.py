"""Builds the volume claims of a StatefulSet's pods, with their names and their owners under the retention policy.

Mirrors `stateful_set_utils.go` and `stateful_pod_control.go`. A claim is named `<template>-<pod>` and is created before
its pod. `spec.persistentVolumeClaimRetentionPolicy` determines its owner: none (Retain, Retain), the StatefulSet
(whenDeleted Delete) while its pod is desired, or the pod (whenScaled Delete) after the StatefulSet was scaled down.
Claims of other controllers are ignored.
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, OwnerReference
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS
from kuberuntime.plan import Patch, guarded_patch

DELETE: Final = "Delete"


def claim_templates(statefulset: JSONObject) -> list[JSONObject]:
    """Return `spec.volumeClaimTemplates`."""
    return meta.spec(statefulset).get("volumeClaimTemplates") or []


def claim_name(template: JSONObject, pod_name: str) -> str:
    """Return the name of a pod's claim from this template."""
    return f"{meta.name(template)}-{pod_name}"


def claim_names(statefulset: JSONObject, pod_name: str) -> list[str]:
    """Return the names of all claims of a pod."""
    return [claim_name(template, pod_name) for template in claim_templates(statefulset)]


def build_claims(statefulset: JSONObject, pod_name: str) -> list[JSONObject]:
    """Build all claims of a desired pod, with the owners that the policy requires."""
    namespace = meta.namespace(statefulset)
    labels = (meta.spec(statefulset).get("selector") or {}).get("matchLabels") or {}
    is_owned = _retention_policy(statefulset, "whenDeleted") == DELETE
    owners = {"ownerReferences": [meta.controller_reference(statefulset)]} if is_owned else {}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": meta.metadata(template)
            | {"name": claim_name(template, pod_name), "namespace": namespace}
            | {"labels": meta.labels(template) | labels}
            | owners,
            "spec": meta.spec(template),
        }
        for template in claim_templates(statefulset)
    ]


def pod_volumes(statefulset: JSONObject, pod_name: str, volumes: list[JSONObject]) -> list[JSONObject]:
    """Return the volumes of a pod. Each claim replaces a volume with the same name."""
    claimed: list[JSONObject] = [
        {"name": meta.name(template), "persistentVolumeClaim": {"claimName": claim_name(template, pod_name)}}
        for template in claim_templates(statefulset)
    ]
    names = {volume["name"] for volume in claimed}
    return claimed + [volume for volume in volumes if volume["name"] not in names]


def is_stale(statefulset: JSONObject, pod_name: str, claims: Mapping[str, JSONObject]) -> bool:
    """Return whether a claim still belongs to a previous pod with this name, and will be deleted with it."""
    if _retention_policy(statefulset, "whenScaled") != DELETE:
        return False
    return any(
        reference.get("kind") == "Pod" and reference.get("name") == pod_name
        for name in claim_names(statefulset, pod_name)
        if name in claims
        for reference in meta.owners(claims[name])
    )


def deleting_claim(statefulset: JSONObject, pod_name: str, claims: Mapping[str, JSONObject]) -> str | None:
    """Return the first claim of the pod that is being deleted, so that the pod cannot be created yet."""
    names = claim_names(statefulset, pod_name)
    return next((name for name in names if name in claims and meta.is_deleting(claims[name])), None)


def retention_patches(
    statefulset: JSONObject, pod: JSONObject, *, is_desired: bool, claims: Mapping[str, JSONObject]
) -> list[Patch]:
    """Return the patches that set the owners of the pod's claims by the policy.

    With `is_desired`, the StatefulSet has the ordinal.
    """
    patches = []
    for name in claim_names(statefulset, meta.name(pod)):
        claim = claims.get(name)
        if claim is None or _has_foreign_controller(claim, statefulset, pod):
            continue
        owners = _desired_owners(statefulset, pod, is_desired=is_desired, references=meta.owners(claim))
        if owners != meta.owners(claim):
            patches.append(guarded_patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": {"ownerReferences": owners}}))
    return patches


def _desired_owners(
    statefulset: JSONObject, pod: JSONObject, *, is_desired: bool, references: list[OwnerReference]
) -> list[OwnerReference]:
    by_pod = not is_desired and _retention_policy(statefulset, "whenScaled") == DELETE
    by_set = not by_pod and _retention_policy(statefulset, "whenDeleted") == DELETE
    for owner, owns in ((statefulset, by_set), (pod, by_pod)):
        references = _with_owner(references, owner) if owns else _without_owner(references, owner)
    return references


def _with_owner(references: list[OwnerReference], owner: JSONObject) -> list[OwnerReference]:
    if any(reference.get("uid") == meta.uid(owner) for reference in references):
        return references
    return [*references, meta.controller_reference(owner)]


def _without_owner(references: list[OwnerReference], owner: JSONObject) -> list[OwnerReference]:
    return [reference for reference in references if reference.get("uid") != meta.uid(owner)]


def _has_foreign_controller(claim: JSONObject, statefulset: JSONObject, pod: JSONObject) -> bool:
    controller = meta.controller_of(claim)
    return controller is not None and controller.get("uid") not in (meta.uid(statefulset), meta.uid(pod))


def _retention_policy(statefulset: JSONObject, moment: str) -> str:
    policy = meta.spec(statefulset).get("persistentVolumeClaimRetentionPolicy") or {}
    return str(policy.get(moment) or "Retain")
