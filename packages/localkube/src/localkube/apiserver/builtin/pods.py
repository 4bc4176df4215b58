"""Implements the initial status of pods, the QoS class, and the rules for creation and changes."""

from collections.abc import Iterator

from kuberuntime.objects import resources
from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podresources import qos_class
from kuberuntime.objects.podrules import pod_defaults, pod_rules
from kuberuntime.objects.podrules.values import forbidden
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.validation import resize_rules

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def initial_status(pod: JSONObject) -> JSONObject:
    """Return the status of a new pod."""
    status: JSONObject = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        condition = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
        condition |= {"lastTransitionTime": pod["metadata"].get("creationTimestamp")}
        status["conditions"] = [condition | {"reason": "SchedulingGated", "message": GATED_MESSAGE}]
    return status | {"qosClass": qos_class(pod["spec"])}


def default_status(status: JSONObject, old: JSONObject) -> None:
    """Preserve the QoS class, and set the address list. If `podIP` differs from the list, it takes precedence."""
    if "qosClass" in old:
        status.setdefault("qosClass", old["qosClass"])
    address = status.get("podIP")
    if address and [pod_i_p.get("ip") for pod_i_p in status.get("podIPs") or ()][:1] != [address]:
        status["podIPs"] = [{"ip": address}]


def validate(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a pod or of a change to it."""
    if old is not None:
        yield from pod_rules.validate_change(new, old)
        if new["spec"] == old["spec"]:
            return
    elif new["spec"].get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    yield from pod_rules.validate_spec(new["spec"], "spec")


POD = Strategy(
    resource=resources.PODS,
    struct="Pod",
    description="A Pod is a group of containers that share a host name and an IP address.",
    default=pod_defaults.default_pod,
    on_create=pod_defaults.admit_pod,
    preserve=pod_defaults.admit_pod_update,
    initial_status=initial_status,
    default_status=default_status,
    resized=resize_rules.apply_resize,
    validate=validate,
    validate_resize=resize_rules.validate,
    generation="spec",
    has_status=True,
    short_names=("po",),
    categories=("all",),
    is_lazily_owned=True,
)
