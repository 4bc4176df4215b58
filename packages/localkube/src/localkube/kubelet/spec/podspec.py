"""Accessors for a pod's specification (a plain dictionary), with Kubernetes' defaults."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.intstr import IntOrString
from kuberuntime.objects.meta import JSON, JSONObject

DEFAULT_GRACE_PERIOD: Final = 30.0
HOSTNAME_LENGTH: Final = 63


class SpecError(Exception):
    """The pod's specification is invalid or not supported; the text names the field, the value and what to do."""


def init_containers(pod: JSONObject) -> list[JSONObject]:
    """Return the init containers, sidecars among them, in order."""
    return meta.spec(pod).get("initContainers") or []


def regular_containers(pod: JSONObject) -> list[JSONObject]:
    """Return the regular containers, without init containers."""
    return meta.spec(pod).get("containers") or []


def all_containers(pod: JSONObject) -> list[JSONObject]:
    """Return init containers, then regular ones."""
    return [*init_containers(pod), *regular_containers(pod)]


def find_container(pod: JSONObject, name: str) -> JSONObject | None:
    """Return the container of that name, init containers included."""
    return next((container for container in all_containers(pod) if container["name"] == name), None)


def memory_limit(pod: JSONObject, name: str) -> int:
    """Return the memory limit of a container in bytes, 0 for none."""
    return _limit(pod, name, "memory").ceil()


def cpu_limit(pod: JSONObject, name: str) -> float:
    """Return the limit of a container in cores, 0 for none."""
    return float(_limit(pod, name, "cpu").fraction())


def _limit(pod: JSONObject, name: str, resource: str) -> quantity.Quantity:
    limits = ((find_container(pod, name) or {}).get("resources") or {}).get("limits") or {}
    return quantity.parse(limits.get(resource, 0))


def is_sidecar(container: JSONObject, pod: JSONObject) -> bool:
    """Return whether an init container keeps running next to the regular ones."""
    return container.get("restartPolicy") == "Always" and any(
        other["name"] == container["name"] for other in init_containers(pod)
    )


def restart_policy(pod: JSONObject) -> str:
    """Return the pod's restart policy: Always, OnFailure or Never."""
    return str(meta.spec(pod).get("restartPolicy") or "Always")


def grace_period(pod: JSONObject) -> float:
    """Return the seconds between the stop signal and SIGKILL; a deletion may have shortened them."""
    for value in (meta.metadata(pod).get("deletionGracePeriodSeconds"), meta.spec(pod).get(GRACE_FIELD)):
        if value is not None:
            return float(value)
    return DEFAULT_GRACE_PERIOD


FQDN_LENGTH: Final = 64
"""The maximum characters of a host name in Linux."""

SHOWN: Final = 200
"""The maximum characters of a text that an error quotes."""

GRACE_FIELD: Final = "terminationGracePeriodSeconds"


def hostname(pod: JSONObject) -> str:
    """Return the pod's host name: `spec.hostname`, or the pod's name, truncated to a valid host name.

    >>> hostname({"metadata": {"name": "web-0"}, "spec": {}})
    'web-0'
    """
    name = meta.spec(pod).get("hostname") or meta.name(pod)
    return str(name)[:HOSTNAME_LENGTH].rstrip("-.")


def kernel_hostname(pod: JSONObject, domain: str) -> str:
    """Return the output of `hostname` in the pod: with `setHostnameAsFQDN` the full name, which may be too long."""
    spec, name = meta.spec(pod), hostname(pod)
    if not (spec.get("setHostnameAsFQDN") and spec.get("subdomain")):
        return name
    full = f"{name}.{spec['subdomain']}.{meta.namespace(pod)}.svc.{domain}"
    if len(full) > FQDN_LENGTH:
        raise SpecError(
            f"spec.setHostnameAsFQDN: the name {full} has {len(full)} characters, and a host name at most {FQDN_LENGTH}: "
            "shorten the names, or leave setHostnameAsFQDN out"
        )
    return full


def uses_host_network(pod: JSONObject, *, stub: bool) -> bool:
    """Return whether the pod shares the network of this machine: it requests that, and no stubs replace programs.

    In a rehearsal with stubs, pods of several simulated nodes may use the same port.
    """
    return bool(meta.spec(pod).get("hostNetwork")) and not stub


def declared_ports(container: JSONObject) -> tuple[int, ...]:
    """Return the TCP ports that the container declares."""
    ports = container.get("ports") or []
    return tuple(port["containerPort"] for port in ports if (port.get("protocol") or "TCP") == "TCP")


def resolve_port(container: JSONObject, port: IntOrString) -> int:
    """Return the number of a port given by number or by the name of a declared port."""
    if isinstance(port, int):
        return port
    if port.isdecimal():
        return int(port)
    for declared in container.get("ports") or []:
        if declared.get("name") == port:
            return int(declared["containerPort"])
    raise SpecError(f'container "{container["name"]}" declares no port named "{port}"; name a port it declares')


def probes(container: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield the container's probes by kind: startup, liveness, readiness."""
    for kind in ("startup", "liveness", "readiness"):
        probe = container.get(f"{kind}Probe")
        if probe:
            yield kind, probe


def hook(container: JSONObject, moment: str) -> JSONObject | None:
    """Return the lifecycle hook of that moment (`postStart`, `preStop`)."""
    lifecycle: Mapping[str, JSONObject] = container.get("lifecycle") or {}
    return lifecycle.get(moment)


def require_no_nul(value: JSON, place: str) -> None:
    """Refuse texts with a NUL character: the API stores them, but no argument, path or variable can have one.

    >>> require_no_nul({"command": ["sh", "-c"]}, "containers[main]")
    """
    if isinstance(value, str) and "\0" in value:
        raise SpecError(f"{place}: {json.dumps(value[:SHOWN])} contains a NUL character; leave it out")
    if isinstance(value, dict):
        for name, child in value.items():
            require_no_nul(child, f"{place}.{name}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            require_no_nul(child, f"{place}[{index}]")
