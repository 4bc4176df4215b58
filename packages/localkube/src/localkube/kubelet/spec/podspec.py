"""Provides accessors for a pod spec (a plain dictionary) with the defaults of Kubernetes."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.intstr import IntOrString
from kuberuntime.objects.meta import JSON, JSONObject

DEFAULT_GRACE_PERIOD: Final = 30.0
HOSTNAME_LENGTH: Final = 63


class SpecError(Exception):
    """The pod spec is invalid or not supported. The message contains the field, the value and the solution."""


def init_containers(pod: JSONObject) -> list[JSONObject]:
    """Return the init containers, including sidecars, in order."""
    return meta.spec(pod).get("initContainers") or []


def regular_containers(pod: JSONObject) -> list[JSONObject]:
    """Return the regular containers, without init containers."""
    return meta.spec(pod).get("containers") or []


def all_containers(pod: JSONObject) -> list[JSONObject]:
    """Return the init containers, followed by the regular containers."""
    return [*init_containers(pod), *regular_containers(pod)]


def find_container(pod: JSONObject, name: str) -> JSONObject | None:
    """Return the container with this name, including init containers."""
    return next((container for container in all_containers(pod) if container["name"] == name), None)


def memory_limit(pod: JSONObject, name: str) -> int:
    """Return the memory limit of a container in bytes, or 0 if it is unlimited."""
    return _limit(pod, name, "memory").ceil()


def cpu_limit(pod: JSONObject, name: str) -> float:
    """Return the CPU limit of a container in cores, or 0 if it is unlimited."""
    return float(_limit(pod, name, "cpu").fraction())


def _limit(pod: JSONObject, name: str, resource: str) -> quantity.Quantity:
    limits = ((find_container(pod, name) or {}).get("resources") or {}).get("limits") or {}
    return quantity.parse(limits.get(resource, 0))


def is_sidecar(container: JSONObject, pod: JSONObject) -> bool:
    """Return whether an init container runs concurrently with the regular containers."""
    return container.get("restartPolicy") == "Always" and any(
        other["name"] == container["name"] for other in init_containers(pod)
    )


def restart_policy(pod: JSONObject) -> str:
    """Return the restart policy of the pod: Always, OnFailure or Never."""
    return str(meta.spec(pod).get("restartPolicy") or "Always")


def grace_period(pod: JSONObject) -> float:
    """Return the seconds between the stop signal and SIGKILL, which a deletion can shorten."""
    for value in (meta.metadata(pod).get("deletionGracePeriodSeconds"), meta.spec(pod).get(GRACE_FIELD)):
        if value is not None:
            return float(value)
    return DEFAULT_GRACE_PERIOD


FQDN_LENGTH: Final = 64
"""The maximum number of characters in a host name on Linux."""

SHOWN: Final = 200
"""The maximum number of characters that an error quotes."""

GRACE_FIELD: Final = "terminationGracePeriodSeconds"


def hostname(pod: JSONObject) -> str:
    """Return the host name of the pod: `spec.hostname`, or the pod name truncated to a valid host name.

    >>> hostname({"metadata": {"name": "web-0"}, "spec": {}})
    'web-0'
    """
    name = meta.spec(pod).get("hostname") or meta.name(pod)
    return str(name)[:HOSTNAME_LENGTH].rstrip("-.")


def kernel_hostname(pod: JSONObject, domain: str) -> str:
    """Return the output of `hostname` in the pod. With `setHostnameAsFQDN`, the full name can be too long."""
    spec, name = meta.spec(pod), hostname(pod)
    if not (spec.get("setHostnameAsFQDN") and spec.get("subdomain")):
        return name
    full = f"{name}.{spec['subdomain']}.{meta.namespace(pod)}.svc.{domain}"
    if len(full) > FQDN_LENGTH:
        raise SpecError(
            f"spec.setHostnameAsFQDN: {full} has {len(full)} characters, but a host name has at most {FQDN_LENGTH}. "
            "Shorten the names, or remove this field"
        )
    return full


def uses_host_network(pod: JSONObject, *, stub: bool) -> bool:
    """Return whether the pod shares this machine's network because it requests this and stubs are not used.

    In a rehearsal with stubs, pods of several simulated nodes may use the same port.
    """
    return bool(meta.spec(pod).get("hostNetwork")) and not stub


def declared_ports(container: JSONObject) -> tuple[int, ...]:
    """Return the TCP ports that the container declares."""
    ports = container.get("ports") or []
    return tuple(port["containerPort"] for port in ports if (port.get("protocol") or "TCP") == "TCP")


def resolve_port(container: JSONObject, port: IntOrString) -> int:
    """Return the number of a port that is specified by number or by the name of a declared port."""
    if isinstance(port, int):
        return port
    if port.isdecimal():
        return int(port)
    for declared in container.get("ports") or []:
        if declared.get("name") == port:
            return int(declared["containerPort"])
    raise SpecError(f'container "{container["name"]}" does not declare a port named "{port}". Use a declared port')


def container_probes(container: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield the probes of the container by type: startup, liveness, readiness."""
    for kind in ("startup", "liveness", "readiness"):
        probe = container.get(f"{kind}Probe")
        if probe:
            yield kind, probe


def lifecycle_hook(container: JSONObject, moment: str) -> JSONObject | None:
    """Return the lifecycle hook with this name (`postStart`, `preStop`)."""
    lifecycle: Mapping[str, JSONObject] = container.get("lifecycle") or {}
    return lifecycle.get(moment)


def require_no_nul(value: JSON, place: str) -> None:
    """Reject strings with a NUL character, which the API stores, but arguments, paths and variables cannot contain.

    >>> require_no_nul({"command": ["sh", "-c"]}, "containers[main]")
    """
    if isinstance(value, str) and "\0" in value:
        raise SpecError(f"{place}: {json.dumps(value[:SHOWN])} contains a NUL character. Remove it")
    if isinstance(value, dict):
        for name, child in value.items():
            require_no_nul(child, f"{place}.{name}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            require_no_nul(child, f"{place}[{index}]")
