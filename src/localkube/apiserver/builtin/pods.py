"""Pods: the status of a new one, its QoS class, and the rules for creation and change."""

from collections.abc import Iterator
from fractions import Fraction

from kuberuntime.objects import quantity, resources
from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.builtin.strategy import Strategy
from localkube.apiserver.validation import pod_defaults, pod_rules
from localkube.apiserver.validation.values import forbidden

COMPUTE = ("cpu", "memory")
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def initial_status(pod: JSONObject) -> JSONObject:
    """Return the status of a new pod."""
    status: JSONObject = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        condition = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
        condition |= {"lastTransitionTime": pod["metadata"].get("creationTimestamp")}
        status["conditions"] = [condition | {"reason": "SchedulingGated", "message": GATED_MESSAGE}]
    return status | {"qosClass": quality_of_service(pod["spec"])}


def default_status(status: JSONObject, old: JSONObject) -> None:
    """Keep the QoS class, and fill in the list of addresses: where it differs, the single address takes precedence."""
    if "qosClass" in old:
        status.setdefault("qosClass", old["qosClass"])
    address = status.get("podIP")
    if address and [one.get("ip") for one in status.get("podIPs") or ()][:1] != [address]:
        status["podIPs"] = [{"ip": address}]


def quality_of_service(spec: JSONObject) -> str:
    """Return the class that decides which pods are evicted first.

    >>> quality_of_service({"containers": [{"resources": {"requests": {"cpu": "1"}}}]})
    'Burstable'
    """
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if spec.get("resources"):
        containers = [spec]
    amounts = [_compute(container.get("resources", {})) for container in containers]
    if not any(limits or requests for limits, requests in amounts):
        return "BestEffort"
    if all(len(limits) == len(COMPUTE) and requests == limits for limits, requests in amounts):
        return "Guaranteed"
    return "Burstable"


def _compute(resources_: JSONObject) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    limits, requests = ({
        name: quantity.parse(resources_.get(field, {})[name]).fraction()
        for name in COMPUTE
        if resources_.get(field, {}).get(name, "0") != "0"
    } for field in ("limits", "requests"))  # fmt: skip
    return limits, requests


def validate(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a pod, and of a change of one."""
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
    description="A Pod is a group of containers that are started together, with one host name and one address.",
    default=pod_defaults.default_pod,
    on_create=pod_defaults.admit_pod,
    carry=pod_defaults.keep_tolerating,
    initial_status=initial_status,
    default_status=default_status,
    validate=validate,
    generation="spec",
    has_status=True,
    short_names=("po",),
    categories=("all",),
    lazily_owned=True,
)
