"""Defines Nodes, Namespaces, Leases and PriorityClasses."""

from collections.abc import Iterator

from kuberuntime.objects import names, quantity, resources
from kuberuntime.objects.field import FieldError, all_invalid, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.scheduling_rules import EFFECTS
from kuberuntime.objects.podrules.values import duplicate, forbidden, validate_choice, validate_minimum
from localkube.apiserver.builtin.strategy import Strategy

NAME_LABEL = "kubernetes.io/metadata.name"
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PREFIX = "system-"


def validate_node(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a node."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(new["spec"].get("taints") or ()):
        path = f"spec.taints[{index}]"
        yield from all_invalid(f"{path}.key", taint["key"], names.label_key(taint["key"]))
        yield from all_invalid(f"{path}.value", taint.get("value", ""), names.label_value(taint.get("value", "")))
        yield from validate_choice(taint["effect"], EFFECTS, f"{path}.effect")
        if (taint["key"], taint["effect"]) in seen:
            yield duplicate(path, taint)
        seen.add((taint["key"], taint["effect"]))
    yield from validate_node_status(new, _old)


def validate_node_status(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a node's capacity and allocatable resources."""
    for field in ("capacity", "allocatable"):
        for name, amount in (new["status"].get(field) or {}).items():
            if quantity.parse(amount) < quantity.ZERO:
                yield invalid(f"status.{field}.{name}", amount, "must be greater than or equal to 0")


def default_node(node: JSONObject) -> None:
    """Set `allocatable` to `capacity` if it is absent."""
    if node["status"].get("capacity"):
        node["status"].setdefault("allocatable", dict(node["status"]["capacity"]))


def default_namespace(namespace: JSONObject) -> None:
    """Set the label with the name of the namespace."""
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = metadata.get("labels", {}) | {NAME_LABEL: metadata["name"]}


def admit_namespace(namespace: JSONObject) -> None:
    """Add the finalizer that delays the deletion of a namespace until it is empty."""
    finalizers = namespace["spec"].get("finalizers") or []
    namespace["spec"]["finalizers"] = [*finalizers, *({"kubernetes"} - set(finalizers))]


def preserve_namespace_spec(new: JSONObject, old: JSONObject) -> None:
    """Restore the spec of the stored namespace, because its finalizers are written through `/finalize`."""
    new["spec"] = old["spec"]


def validate_lease(new: JSONObject, _old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a lease."""
    duration = new["spec"].get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    yield from validate_minimum(new["spec"].get("leaseTransitions", 0), 0, "spec.leaseTransitions")


def validate_priority_class(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a PriorityClass, whose value is immutable."""
    if new["value"] > HIGHEST_USER_PRIORITY and not new["metadata"].get("name", "").startswith(SYSTEM_PREFIX):
        text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield forbidden("value", text)
    if old is not None and new["value"] != old["value"]:
        yield forbidden("value", "may not be changed in an update.")
    if old is not None and new["preemptionPolicy"] != old["preemptionPolicy"]:
        yield invalid("preemptionPolicy", new["preemptionPolicy"], "field is immutable")


NODE = Strategy(
    resource=resources.NODES,
    struct="Node",
    description="A Node runs pods. The nodes of the embedded cluster are simulated on one machine.",
    default=default_node,
    validate=validate_node,
    validate_status=validate_node_status,
    has_status=True,
    allows_status_on_create=True,
    short_names=("no",),
    is_lazily_owned=True,
)

NAMESPACE = Strategy(
    resource=resources.NAMESPACES,
    struct="Namespace",
    description="A Namespace contains objects with unique names.",
    default=default_namespace,
    on_create=admit_namespace,
    preserve=preserve_namespace_spec,
    initial_status=lambda _namespace: {"phase": "Active"},
    name_rule=names.dns_1123_label,
    has_status=True,
    short_names=("ns",),
)

LEASE = Strategy(
    resource=resources.LEASES,
    struct="Lease",
    description="A Lease is held by one of several candidates until it expires.",
    validate=validate_lease,
    is_lazily_owned=True,
)

PRIORITY_CLASS = Strategy(
    resource=resources.PRIORITY_CLASSES,
    struct="PriorityClass",
    description="A PriorityClass defines a priority for pods.",
    validate=validate_priority_class,
    generation="constant",
    short_names=("pc",),
)
