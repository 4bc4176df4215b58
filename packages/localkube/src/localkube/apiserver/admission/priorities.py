"""Sets the priorities of new pods, from the PriorityClass of the pod or the default class.

In: a new pod, and the stored classes. Out: the pod with its priority, or an error.
"""

from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, PRIORITY_CLASSES
from localkube.apiserver.model import apierrors
from localkube.apiserver.storage.store import Store, StoreKey

CLASSES: Final = PRIORITY_CLASSES.group_resource
PREEMPT: Final = "PreemptLowerPriority"
NONE: Final[JSONObject] = {"value": 0}
SYSTEM: Final[dict[str, JSONObject]] = {
    "system-cluster-critical": {"value": 2000000000},
    "system-node-critical": {"value": 2000001000},
}
"""The priority classes that are required in every cluster."""


def resolve_priority(store: Store, pod: JSONObject) -> JSONObject:
    """Return the pod with its priority and preemption policy. Reject a pod that specifies different values."""
    spec = pod["spec"]
    name, priority_class = _find_class(store, pod) if spec.get("priorityClassName") else _default_class(store)
    value, policy = priority_class["value"], priority_class.get("preemptionPolicy", PREEMPT)
    computed = "must not be provided in pod spec; priority admission controller computed"
    if spec.get("priority", value) != value:
        why = f"the integer value of priority ({spec['priority']}) {computed} {value} from the given PriorityClass name"
        raise apierrors.forbidden(PODS, meta.name(pod), why)
    if spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) {computed} {policy} from the given"
            " PriorityClass name"
        )
        raise apierrors.forbidden(PODS, meta.name(pod), why)
    class_name = {"priorityClassName": name} if name else {}
    return {**pod, "spec": {**spec, **class_name, "priority": value, "preemptionPolicy": policy}}


def _find_class(store: Store, pod: JSONObject) -> tuple[str, JSONObject]:
    name = pod["spec"]["priorityClassName"]
    priority_class = store.get(StoreKey(CLASSES, "", name)) or SYSTEM.get(name)
    if priority_class is None:
        raise apierrors.forbidden(PODS, meta.name(pod), f"no PriorityClass with name {name} was found")
    return name, priority_class


def _default_class(store: Store) -> tuple[str, JSONObject]:
    """Return the default class, or the class with the lowest value if there are several default classes."""
    classes = [msgspec.json.decode(row) for row in store.list(CLASSES)]
    defaults = [priority_class for priority_class in classes if priority_class.get("globalDefault")]
    if not defaults:
        return "", NONE
    lowest = min(defaults, key=lambda priority_class: int(priority_class["value"]))
    return meta.name(lowest), lowest
