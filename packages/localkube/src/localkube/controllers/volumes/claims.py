"""Binds a volume claim on one machine to a matching volume, or to a new directory.

| claim | what happens |
|---|---|
| names a volume (`spec.volumeName`) | bound to it, once it exists and is free |
| a free volume of its class fits | bound to the smallest such volume |
| class of this provisioner, or none and there is a default class | a volume is provisioned: directory `<root>/pvc-<uid>` |
| class of another provisioner, unknown class, no class at all | stays Pending, an event says why |

A provisioned volume is deleted, with its directory, once its claim and all pods that used it are deleted. Capacity is
not enforced. Mirrors `pkg/controller/volume/persistentvolume` and the events of its `pv_controller.go`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from kuberuntime.plan import Actions, Create, Emit, Event, Patch, guarded_patch
from localkube import wellknown
from localkube.controllers import eventobjects

IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"

DEFAULT_CLASS: Final[JSONObject] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": wellknown.DEFAULT_CLASS_NAME, "annotations": {IS_DEFAULT: "true"}},
    "provisioner": wellknown.PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}


class ObservedClaim(Struct, frozen=True, kw_only=True):
    """A claim, all volumes by name, all storage classes by name, and the root of the directories."""

    claim: JSONObject
    volumes: Mapping[str, JSONObject]
    classes: Mapping[str, JSONObject]
    root: Path


def plan(observed: ObservedClaim) -> Actions:
    """Determine the next step of a claim. Each step is planned when the caches contain the previous step."""
    claim = observed.claim
    if meta.is_deleting(claim) or meta.status(claim).get("phase") == "Bound":
        return ()
    name = meta.spec(claim).get("volumeName")
    if name:
        volume = observed.volumes.get(name)
        return _bind(claim, volume) if volume is not None and _is_free_for(volume, claim) else ()
    volume = _find_volume(observed)
    return _bind(claim, volume) if volume is not None else _provision(observed)


def is_abandoned(volume: JSONObject, claim: JSONObject | None) -> bool:
    """Return whether the claim of a provisioned volume was deleted."""
    reference = meta.spec(volume).get("claimRef") or {}
    is_provisioned = meta.annotations(volume).get(PROVISIONED_BY) in wellknown.PROVISIONERS
    return is_provisioned and bool(reference) and (claim is None or meta.uid(claim) != reference.get("uid"))


def volume_directory(volume: JSONObject, root: Path) -> Path | None:
    """Return the directory of a provisioned volume, or None if its path does not match its name."""
    expected = root / meta.name(volume)
    path = (meta.spec(volume).get("hostPath") or {}).get("path")
    return expected if path == str(expected) and meta.name(volume).startswith("pvc-") else None


def _find_volume(observed: ObservedClaim) -> JSONObject | None:
    """Return the volume that is reserved for the claim, or the smallest free volume that matches."""
    claim = observed.claim
    volumes = [volume for volume in observed.volumes.values() if not meta.is_deleting(volume)]
    reserved = (volume for volume in volumes if _is_reserved_for(volume, claim))
    fitting = (volume for volume in volumes if not meta.spec(volume).get("claimRef") and _fits(volume, observed))
    return next(reserved, None) or min(fitting, key=lambda volume: _capacity(volume).nanos, default=None)


def _bind(claim: JSONObject, volume: JSONObject) -> Actions:
    """Bind the volume first, so that no other claim can use it, and then the claim."""
    actions: Actions = ()
    if not _is_reserved_for(volume, claim):
        actions += (guarded_patch(PERSISTENT_VOLUMES, volume, {"spec": {"claimRef": _reference(claim)}}),)
    if meta.status(volume).get("phase") != "Bound":
        patch = {"metadata": {"uid": meta.uid(volume)}, "status": {"phase": "Bound"}}
        key = meta.key(volume)
        actions += (Patch(resource=PERSISTENT_VOLUMES, key=key, patch=patch, subresource="status"),)
    if meta.spec(claim).get("volumeName") == meta.name(volume):
        return (*actions, _status(claim, volume))
    completed = {"annotations": {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}}
    change = {"metadata": completed, "spec": {"volumeName": meta.name(volume)}}
    return (*actions, guarded_patch(PERSISTENT_VOLUME_CLAIMS, claim, change))


def _status(claim: JSONObject, volume: JSONObject) -> Patch:
    spec = meta.spec(volume)
    bound = {"phase": "Bound", "accessModes": spec.get("accessModes"), "capacity": spec.get("capacity")}
    return guarded_patch(PERSISTENT_VOLUME_CLAIMS, claim, {"status": bound}, subresource="status")


def _provision(observed: ObservedClaim) -> Actions:
    claim = observed.claim
    name = claim_class(observed)
    if not name:
        note = "no persistent volumes available for this claim and no storage class is set"
        return _report_pending(claim, eventobjects.normal_event(claim, "FailedBinding", "Binding", note))
    storage_class = observed.classes.get(name)
    if storage_class is None:
        note = f'storageclass.storage.k8s.io "{name}" not found'
        return _report_pending(claim, eventobjects.warning_event(claim, "ProvisioningFailed", "Provisioning", note))
    if storage_class.get("provisioner") not in wellknown.PROVISIONERS:
        note = (
            "Waiting for a volume to be created either by the external provisioner "
            f"'{storage_class.get('provisioner')}' or manually by the system administrator. If volume creation is "
            "delayed, please verify that the provisioner is running and correctly registered."
        )
        return _report_pending(claim, eventobjects.normal_event(claim, "ExternalProvisioning", "Provisioning", note))
    return (Create(resource=PERSISTENT_VOLUMES, object=_volume(observed, storage_class), if_absent=True),)


def claim_class(observed: ObservedClaim) -> str:
    """Return the name of the claim's class or of the default class, or an empty string if neither exists."""
    name = meta.spec(observed.claim).get("storageClassName")
    if name is not None:
        return str(name)
    return next(
        (
            class_name
            for class_name, storage_class in observed.classes.items()
            if meta.annotations(storage_class).get(IS_DEFAULT) == "true"
        ),
        "",
    )


def _volume(observed: ObservedClaim, storage_class: JSONObject) -> JSONObject:
    claim, name = observed.claim, f"pvc-{meta.uid(observed.claim)}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: wellknown.PROVISIONER}},
        "spec": {
            "capacity": {"storage": _request(claim)},
            "accessModes": meta.spec(claim).get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": meta.name(storage_class),
            "volumeMode": meta.spec(claim).get("volumeMode") or "Filesystem",
            "claimRef": _reference(claim),
            "hostPath": {"path": str(observed.root / name), "type": "DirectoryOrCreate"},
        },
    }


def _report_pending(claim: JSONObject, event: Event) -> Actions:
    """Report the reason why the claim remains Pending."""
    pending: Actions = ()
    if meta.status(claim).get("phase") != "Pending":
        status = {"status": {"phase": "Pending"}}
        pending = (guarded_patch(PERSISTENT_VOLUME_CLAIMS, claim, status, subresource="status"),)
    return (*pending, Emit(events=(event,)))


def _is_free_for(volume: JSONObject, claim: JSONObject) -> bool:
    return not meta.spec(volume).get("claimRef") or _is_reserved_for(volume, claim)


def _is_reserved_for(volume: JSONObject, claim: JSONObject) -> bool:
    reference = meta.spec(volume).get("claimRef") or {}
    is_match = (reference.get("namespace"), reference.get("name")) == tuple(meta.key(claim))
    return is_match and reference.get("uid") in (None, "", meta.uid(claim))


def _fits(volume: JSONObject, observed: ObservedClaim) -> bool:
    spec, claim_spec = meta.spec(volume), meta.spec(observed.claim)
    return (
        (spec.get("storageClassName") or "") == claim_class(observed)
        and not claim_spec.get("selector")
        and set(claim_spec.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and _capacity(volume) >= quantity.parse(_request(observed.claim))
    )


def _capacity(volume: JSONObject) -> quantity.Quantity:
    return quantity.parse((meta.spec(volume).get("capacity") or {}).get("storage") or "0")


def _request(claim: JSONObject) -> str:
    requests = (meta.spec(claim).get("resources") or {}).get("requests") or {}
    return str(requests.get("storage") or "0")


def _reference(claim: JSONObject) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace(claim),
        "name": meta.name(claim),
        "uid": meta.uid(claim),
    }
