"""Defines Services, Endpoints and EndpointSlices.

Without a virtual network, services do not get addresses, node ports or load balancers. The name of every service
resolves to its pods, so a `targetPort` has no effect inside pods. Services are stored unchanged, and do not become
headless (`clusterIP: None`). So clients that choose a pod themselves, such as `kubectl port-forward`, respect the
`targetPort`.
"""

import ipaddress
from collections.abc import Iterator

from kuberuntime.objects import names, resources
from kuberuntime.objects.field import FieldError, Kind, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.container_rules import PROTOCOLS
from kuberuntime.objects.podrules.probe_rules import port_name_errors
from kuberuntime.objects.podrules.values import duplicate, validate_choice, validate_immutable, validate_port
from localkube.apiserver.builtin.strategy import Strategy

HEADLESS = "None"
SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
AFFINITIES = ("ClientIP", "None")
AFFINITY_SECONDS = 10800
ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


def default_service(service: JSONObject) -> None:
    """Set the defaults of a Service."""
    spec = service["spec"]
    kind = spec["type"]
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {})
        config.setdefault("clientIP", {}).setdefault("timeoutSeconds", AFFINITY_SECONDS)
    for port in spec.get("ports") or ():
        port["targetPort"] = port["targetPort"] or port["port"]
    if kind == "ExternalName":
        return
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in {"NodePort", "LoadBalancer"}:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    _default_address(spec)


def _default_address(spec: JSONObject) -> None:
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    without_selector = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    families = ["IPv4", "IPv6"] if without_selector else ["IPv4"]
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if without_selector else "SingleStack")
    spec.setdefault("ipFamilies", families)


def preserve_service_address(new: JSONObject, old: JSONObject) -> None:
    """Preserve the address of a Service if an update does not specify one."""
    if new["spec"].get("type", "ClusterIP") != "ExternalName":
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if field in old["spec"]:
                new["spec"].setdefault(field, old["spec"][field])


def validate_service(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of a service, or of its change."""
    spec = new["spec"]
    yield from validate_choice(spec["type"], SERVICE_TYPES, "spec.type")
    yield from validate_choice(spec["sessionAffinity"], AFFINITIES, "spec.sessionAffinity")
    if not spec.get("ports") and spec.get("clusterIP") != HEADLESS and spec["type"] != "ExternalName":
        yield required_error("spec.ports")
    if spec["type"] in {"NodePort", "LoadBalancer"} and spec.get("clusterIP") == HEADLESS:
        yield invalid("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {spec['type']} services")
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        yield required_error("spec.externalName")
    yield from names.label_errors(spec.get("selector") or {}, "spec.selector")
    yield from _validate_ports(spec.get("ports") or [])
    if spec.get("clusterIP", HEADLESS) != HEADLESS and not _is_address(spec["clusterIP"]):
        yield invalid("spec.clusterIPs[0]", spec["clusterIP"], ADDRESS_TEXT)
    if old is not None and "ExternalName" not in {spec["type"], old["spec"]["type"]}:
        was, now = old["spec"].get("clusterIP", ""), spec.get("clusterIP", "")
        if now != was:
            yield invalid("spec.clusterIPs[0]", [now], "may not change once set")


def service_warnings(service: JSONObject) -> Iterator[str]:
    """Yield warnings about features of a Service that have no effect, unless it is headless."""
    spec, name = service["spec"], service["metadata"]["name"]
    if spec["type"] == "ExternalName" or spec.get("clusterIP") == HEADLESS:
        return
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        yield (
            f"spec.type: {spec['type']} Services are not reachable on a local cluster. Use `kubectl port-forward "
            f"service/{name}`, or the name {name} in pods"
        )
    if spec.get("clusterIP"):
        yield f"spec.clusterIP: {spec['clusterIP']} is not reachable on a local cluster. Use the name {name} in pods"
    if spec.get("selector"):
        for index, port in enumerate(spec.get("ports") or ()):
            if port["targetPort"] != port["port"]:
                yield _not_forwarded_warning(name, index, port)


def _not_forwarded_warning(name: str, index: int, port: JSONObject) -> str:
    number, target = port["port"], port["targetPort"]
    address = f"{name}:{target}" if isinstance(target, int) else f"{name}, at the pod port named {target}"
    return (
        f"spec.ports[{index}].targetPort: port {number} is not forwarded to {target} in pods. Connect to {address}, or "
        f"use `kubectl port-forward service/{name} {number}`"
    )


ADDRESS_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _validate_ports(ports: list[JSONObject]) -> Iterator[FieldError]:
    seen_names: set[str] = set()
    numbers: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            yield required_error(f"{path}.name")
        if name:
            yield from all_invalid(f"{path}.name", name, names.dns_1123_label(name))
            if name in seen_names:
                yield duplicate(f"{path}.name", name)
            seen_names.add(name)
        yield from validate_port(port["port"], f"{path}.port")
        yield from validate_choice(port["protocol"], PROTOCOLS, f"{path}.protocol")
        target = port["targetPort"]
        if isinstance(target, int):
            yield from validate_port(target, f"{path}.targetPort")
        else:
            yield from all_invalid(f"{path}.targetPort", target, port_name_errors(target))
        pair = (port["port"], port["protocol"])
        if pair in numbers:
            yield duplicate(path, {"port": pair[0], "protocol": pair[1]})
        numbers.add(pair)


def validate_slice(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the errors of an EndpointSlice."""
    if not new["addressType"]:
        yield required_error("addressType")
    else:
        yield from validate_choice(new["addressType"], ADDRESS_TYPES, "addressType")
    if old is not None:
        yield from validate_immutable(new["addressType"], old["addressType"], "addressType")
    for index, endpoint in enumerate(new["endpoints"] or ()):
        if not endpoint["addresses"]:
            yield required_error(f"endpoints[{index}].addresses", "must contain at least 1 address")
        elif len(endpoint["addresses"]) > MAX_ADDRESSES:
            path = f"endpoints[{index}].addresses"
            count = len(endpoint["addresses"])
            yield FieldError(Kind.TOO_MANY, path, detail=f"{count}: must have at most {MAX_ADDRESSES} items")


MAX_ADDRESSES = 100

SERVICE = Strategy(
    resource=resources.SERVICES,
    struct="Service",
    description="A Service provides a DNS name for the pods that its selector matches.",
    default=default_service,
    preserve=preserve_service_address,
    validate=validate_service,
    warnings=service_warnings,
    name_rule=names.dns_1123_label,
    has_status=True,
    short_names=("svc",),
    categories=("all",),
)

ENDPOINTS = Strategy(
    resource=resources.ENDPOINTS,
    struct="Endpoints",
    description="Endpoints lists the addresses and ports of a Service. EndpointSlice replaces this kind.",
    short_names=("ep",),
    is_lazily_owned=True,
)

ENDPOINT_SLICE = Strategy(
    resource=resources.ENDPOINT_SLICES,
    struct="EndpointSlice",
    description="An EndpointSlice lists the addresses and ports of a Service.",
    validate=validate_slice,
    generation="object and labels",
    is_lazily_owned=True,
)
