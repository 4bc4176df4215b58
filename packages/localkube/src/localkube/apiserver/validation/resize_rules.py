"""Implements the rules for a pod resize.

Only CPU and memory of containers are mutable, and the QoS class is immutable.

Resizes that the embedded kubelet cannot perform are rejected: resizes with restarts, and pod-level resources.
"""

from collections.abc import Iterator

from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podresources import qos_class, without_compute
from kuberuntime.objects.podrules import pod_rules
from kuberuntime.objects.podrules.values import forbidden

CONTAINER_LISTS = ("containers", "initContainers")
AMOUNTS = ("requests", "limits")
KEPT = ("labels", "annotations", "finalizers", "ownerReferences")
"""The metadata that a resize does not change."""


def apply_resize(new: JSONObject, old: JSONObject) -> JSONObject:
    """Return the stored pod with the resources of the sent pod.

    Added or removed containers are kept, so that validation rejects them.
    """
    metadata = {name: value for name, value in new["metadata"].items() if name not in KEPT}
    metadata |= {name: old["metadata"][name] for name in KEPT if name in old["metadata"]}
    if _names(new) != _names(old):
        return new | {"metadata": metadata}
    lists = {
        field: [_with_resources(before, after) for before, after in zip(old["spec"][field], containers, strict=True)]
        for field in CONTAINER_LISTS
        if (containers := new["spec"].get(field))
    }
    return old | {"metadata": metadata, "spec": old["spec"] | lists}


def validate(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a resize."""
    assert old is not None  # noqa: S101 - only a pod that exists is resized
    yield from pod_rules.validate_spec(new["spec"], "spec")
    if (old["status"].get("qosClass") or qos_class(old["spec"])) != qos_class(new["spec"]):
        yield invalid("spec", new["status"].get("qosClass", ""), "Pod QOS Class may not change as a result of resizing")
    if not _is_supported(old):
        yield forbidden("spec", "Pod running on node without support for resize")
    if old["spec"].get("resources"):
        yield forbidden("spec.resources", "the embedded cluster cannot resize pods with pod-level resources")
    moved = list(_validate_unchanged(new, old))
    yield from moved
    if not moved:
        yield from _resize_errors(new, old)


def _names(pod: JSONObject) -> list[list[str]]:
    return [[container["name"] for container in pod["spec"].get(field) or ()] for field in CONTAINER_LISTS]


def _with_resources(before: JSONObject, after: JSONObject) -> JSONObject:
    own = {name: after[name] for name in ("resources", "resizePolicy") if name in after}
    return {name: value for name, value in before.items() if name not in ("resources", "resizePolicy")} | own


def _is_supported(pod: JSONObject) -> bool:
    """Return whether the first running container reports its resources, as on a node that supports resizes."""
    statuses = pod["status"].get("containerStatuses") or ()
    running = (status for status in statuses if (status.get("state") or {}).get("running") is not None)
    return next(("resources" in status for status in running), True)


def _validate_unchanged(new: JSONObject, old: JSONObject) -> Iterator[FieldError]:
    for field, before, after in zip(CONTAINER_LISTS, _names(old), _names(new), strict=True):
        if len(before) != len(after):
            yield forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            continue
        for index, name in enumerate(before):
            if after[index] != name:
                text = f"{field} may not be renamed or reordered on resize"
                yield forbidden(f"spec.{field}[{index}].name", text)


def _resize_errors(new: JSONObject, old: JSONObject) -> Iterator[FieldError]:
    for field in reversed(CONTAINER_LISTS):
        pairs = zip(old["spec"].get(field) or (), new["spec"].get(field) or (), strict=True)
        for index, (before, after) in enumerate(pairs):
            if before != after:
                yield from _container_resize_errors(
                    before, after, f"spec.{field}[{index}]", is_init=field == "initContainers"
                )


def _container_resize_errors(
    before: JSONObject, after: JSONObject, where: str, *, is_init: bool
) -> Iterator[FieldError]:
    had, has = before.get("resources", {}), after.get("resources", {})
    for kind in AMOUNTS:
        if had.get(kind, {}).keys() - has.get(kind, {}).keys():
            yield forbidden(f"{where}.resources.{kind}", f"resource {kind} cannot be removed")
    if without_compute(before) != without_compute(after):
        text = "only cpu and memory resources"
        yield (
            forbidden(where, f"{text} for init or sidecar containers are mutable")
            if is_init
            else forbidden("spec", f"{text} are mutable")
        )
    if any(policy.get("restartPolicy") == "RestartContainer" for policy in before.get("resizePolicy") or ()):
        yield forbidden(f"{where}.resizePolicy", "the embedded cluster does not restart containers for a resize")
