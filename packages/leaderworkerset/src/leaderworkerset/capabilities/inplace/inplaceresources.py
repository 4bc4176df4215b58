"""Resizes the CPU and memory of pods in place, and tracks the progress of the kubelet.

The subresource `resize` writes them. The patch of images and labels records the desired amounts on the pod:
`CONTAINER.limits.cpu=2,…`. So the update can continue if the manager exits between the two writes, or if a second
update follows. The record is removed when the group is updated. After that, other clients may resize its pods.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kuberuntime.objects import meta, podresources, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import Quantity, QuantityError
from leaderworkerset.api import labels

TEMPLATES: Final = ("leaderTemplate", "workerTemplate")
PENDING: Final = "PodResizePending"
INFEASIBLE: Final = "Infeasible"
UNSUPPORTED: Final = "its node does not support resizing pods"


class ResourceField(NamedTuple):
    """The location of a quantity. It consists of the container, `limits` or `requests`, and `cpu` or `memory`."""

    container: str
    kind: str
    resource: str


def changed_quantities(before: JSONObject | None, after: JSONObject) -> dict[ResourceField, str]:
    """Return the quantities that differ from a previous pod template. It is None if it no longer exists."""
    known = {} if before is None else _quantities(_containers(before))
    return {place: amount for place, amount in _quantities(_containers(after)).items() if known.get(place) != amount}


def read(pod: JSONObject) -> dict[ResourceField, str]:
    """Return the recorded quantities of a pod. Invalid entries are ignored.

    >>> read({"metadata": {"annotations": {labels.IN_PLACE_RESOURCES: "main.limits.cpu=2,main.cpu=1,main.limits.memory=x"}}})
    {ResourceField(container='main', kind='limits', resource='cpu'): '2'}
    """
    amounts = {}
    for entry in meta.annotations(pod).get(labels.IN_PLACE_RESOURCES, "").split(","):
        path, _, amount = entry.partition("=")
        parts = path.split(".")
        if len(parts) == len(ResourceField._fields) and _parse_quantity(amount) is not None:
            amounts[ResourceField(*parts)] = amount
    return amounts


def record(amounts: Mapping[ResourceField, str]) -> str:
    """Return the record of quantities."""
    return ",".join(f"{'.'.join(place)}={amount}" for place, amount in sorted(amounts.items()))


def missing_quantities(pod: JSONObject, amounts: Mapping[ResourceField, str]) -> dict[ResourceField, str]:
    """Return the quantities that are missing in the pod spec, or none if the node cannot resize the pod."""
    return {} if not amounts or _is_unsupported(pod) else _missing_amounts(_containers(pod), amounts)


def is_resize_complete(pod: JSONObject) -> bool:
    """Return whether the recorded quantities match the pod spec and the status reported by the kubelet.

    A status from before the patch still has the old amounts, regardless of its conditions. If an infeasible resize is
    reverted, the old amounts are the desired amounts, and only the spec differs.
    """
    amounts = read(pod)
    reported = meta.status(pod).get("containerStatuses") or []
    return not amounts or not (_missing_amounts(reported, amounts) or missing_quantities(pod, amounts))


def rejection(pod: JSONObject) -> str:
    """Return the reason why the kubelet does not resize a pod, or an empty string if no condition reports it.

    A deferred resize may succeed later.
    """
    amounts = read(pod)
    if is_resize_complete(pod):
        return ""
    if _is_unsupported(pod):
        return UNSUPPORTED
    pending = meta.find_condition(pod, PENDING) or {}
    is_infeasible = pending.get("status") == "True" and pending.get("reason") == INFEASIBLE
    return INFEASIBLE if is_infeasible and not _missing_amounts(_containers(pod), amounts) else ""


def container_resources(amounts: Mapping[ResourceField, str]) -> dict[str, JSONObject]:
    """Return quantities as `resources` fields by container name."""
    resources: dict[str, JSONObject] = {}
    for (container, kind, resource), amount in amounts.items():
        resources.setdefault(container, {}).setdefault(kind, {})[resource] = amount
    return resources


def without_compute_resources(template: JSONObject) -> JSONObject:
    """Return a pod template without the CPU and memory of its containers."""
    spec = meta.spec(template)
    bare = [podresources.without_compute(container) for container in spec.get("containers") or []]
    return template | {"spec": spec | {"containers": bare}}


def obstacle(old: JSONObject, new: JSONObject) -> str:
    """Return the first different `spec` field that prevents an in-place resize, or an empty string.

    The other fields of the templates are equal. The API server rejects the removal of an amount, a change of the QoS
    class, and any change if pod-level resources are set. A container that is restarted for a resize would count as
    failed.
    """
    before, after = (obj.get("leaderWorkerTemplate") or {} for obj in (old, new))
    obstacles = (
        why
        for name in TEMPLATES
        if before.get(name) and after.get(name)
        for why in _obstacles(before[name], after[name], f"spec.leaderWorkerTemplate.{name}.spec")
    )
    return next(obstacles, "")


def _obstacles(before: JSONObject, after: JSONObject, path: str) -> Iterator[str]:
    for number, (old, new) in enumerate(zip(_containers(before), _containers(after), strict=False)):
        had, has, place = _quantities([old]), _quantities([new]), f"{path}.containers[{number}]"
        if had == has:
            continue
        yield from (f"{place}.resources.{amount.kind}.{amount.resource}" for amount in had if amount not in has)
        if any(policy.get("restartPolicy") == "RestartContainer" for policy in new.get("resizePolicy") or []):
            yield f"{place}.resizePolicy"
        if meta.spec(after).get("resources"):
            yield f"{path}.resources"
        if podresources.qos_class(meta.spec(before)) != podresources.qos_class(meta.spec(after)):
            yield f"{place}.resources (the quality of service class)"


def _containers(obj: JSONObject) -> list[JSONObject]:
    return meta.spec(obj).get("containers") or []


def _quantities(holders: list[JSONObject]) -> dict[ResourceField, str]:
    return {
        ResourceField(holder["name"], kind, resource): str(quantity.parse(amount))
        for holder in holders
        for kind, amounts in podresources.compute_resources(holder.get("resources") or {}).items()
        for resource, amount in amounts.items()
    }


def _missing_amounts(holders: list[JSONObject], amounts: Mapping[ResourceField, str]) -> dict[ResourceField, str]:
    present = _quantities(holders)
    return {
        place: amount
        for place, amount in amounts.items()
        if _parse_quantity(present.get(place, "")) != _parse_quantity(amount)
    }


def _is_unsupported(pod: JSONObject) -> bool:
    """Return whether the kubelet does not report the resources of running containers, and so cannot resize pods."""
    statuses = meta.status(pod).get("containerStatuses") or []
    return meta.is_condition_true(pod, "Ready") and not any("resources" in status for status in statuses)


def _parse_quantity(text: str) -> Quantity | None:
    try:
        return quantity.parse(text)
    except QuantityError:
        return None
