"""Defines PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from collections.abc import Iterator

from kuberuntime.objects import quantity, resources
from kuberuntime.objects.field import FieldError, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import forbidden, validate_choice, validate_selector
from localkube.apiserver.builtin.strategy import Strategy

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
CLAIM_FROZEN = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
NOT_SOURCES = {
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
}  # fmt: skip


def validate_claim(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a claim or of a change to it."""
    bound = old is not None and old.get("status", {}).get("phase") == "Bound"
    if old is not None and _immutable_fields(new["spec"], bound=bound) != _immutable_fields(old["spec"], bound=bound):
        yield forbidden("spec", CLAIM_FROZEN)
    yield from validate_claim_spec(new["spec"], "spec")


def validate_claim_spec(spec: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield the errors of the spec of a claim."""
    if not spec.get("accessModes"):
        yield required_error(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes") or ():
        yield from validate_choice(mode, ACCESS_MODES, f"{path}.accessModes")
    storage = spec["resources"].get("requests", {}).get("storage")
    if storage is None:
        yield required_error(f"{path}.resources[storage]")
    elif quantity.parse(storage) <= quantity.ZERO:
        yield invalid(f"{path}.resources[storage]", storage, "must be greater than zero")
    yield from validate_choice(spec["volumeMode"], VOLUME_MODES, f"{path}.volumeMode")
    yield from validate_selector(spec.get("selector"), f"{path}.selector")


def _immutable_fields(spec: JSONObject, *, bound: bool) -> JSONObject:
    """Return the immutable part of a claim spec, without the initial volume, the class, and a larger request."""
    free = {"volumeAttributesClassName", "resources"} if bound else {"volumeName", "storageClassName"}
    return {name: value for name, value in spec.items() if name not in free}


def validate_volume(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a volume or of a change to it."""
    spec = new["spec"]
    if not spec.get("accessModes"):
        yield required_error("spec.accessModes")
    for mode in spec.get("accessModes") or ():
        yield from validate_choice(mode, ACCESS_MODES, "spec.accessModes")
    if not spec.get("capacity"):
        yield required_error("spec.capacity")
    sources = [name for name in spec if name not in NOT_SOURCES]
    if not sources:
        yield required_error("spec", "must specify a volume type")
    for other in sources[1:]:
        yield forbidden(f"spec.{other}", "may not specify more than 1 volume type")
    yield from validate_choice(
        spec["persistentVolumeReclaimPolicy"], RECLAIM_POLICIES, "spec.persistentVolumeReclaimPolicy"
    )
    if old is not None and any(spec[name] != old["spec"].get(name) for name in sources):
        yield forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")


def validate_class(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a storage class. Most of its fields are immutable."""
    if not new["provisioner"]:
        yield required_error("provisioner")
    yield from validate_choice(new["reclaimPolicy"], ("Delete", "Retain"), "reclaimPolicy")
    yield from validate_choice(new["volumeBindingMode"], BINDING_MODES, "volumeBindingMode")
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if old is not None and new.get(field) != old.get(field):
            yield forbidden(field, f"updates to {field} are forbidden.")


CLAIM = Strategy(
    resource=resources.PERSISTENT_VOLUME_CLAIMS,
    struct="PersistentVolumeClaim",
    description="A PersistentVolumeClaim requests a PersistentVolume.",
    initial_status=lambda _obj: {"phase": "Pending"},
    validate=validate_claim,
    has_status=True,
    short_names=("pvc",),
)

VOLUME = Strategy(
    resource=resources.PERSISTENT_VOLUMES,
    struct="PersistentVolume",
    description="A PersistentVolume is storage that is independent of the pods that use it.",
    initial_status=lambda _obj: {"phase": "Pending"},
    validate=validate_volume,
    has_status=True,
    short_names=("pv",),
)

STORAGE_CLASS = Strategy(
    resource=resources.STORAGE_CLASSES,
    struct="StorageClass",
    description="A StorageClass describes how volumes for claims are provisioned.",
    validate=validate_class,
    short_names=("sc",),
)
