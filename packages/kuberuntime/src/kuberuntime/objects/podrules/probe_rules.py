"""Validates probes and lifecycle hooks of a container, and returns the same errors as kube-apiserver."""

import re
from collections.abc import Iterator

from kuberuntime.objects.field import FieldError, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import forbidden, port_errors, validate_choice, validate_port

PROBES = ("livenessProbe", "startupProbe", "readinessProbe")
HOOKS = ("postStart", "preStop")
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
SCHEMES = ("HTTP", "HTTPS")
NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")

PORT_NAME_TEXTS = {
    "must be no more than 15 characters": re.compile(r".{0,15}"),
    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": re.compile(r"[-a-z0-9]*"),
    "must contain at least one letter (a-z)": re.compile(r".*[a-z].*"),
    "must not contain consecutive hyphens": re.compile(r"(?!.*--).*"),
    "must not begin or end with a hyphen": re.compile(r"(?!-).*(?<!-)"),
}


def port_name_errors(name: str) -> list[str]:
    """Return the errors of a port name."""
    return [text for text, pattern in PORT_NAME_TEXTS.items() if not pattern.fullmatch(name)]


def validate_probes(container: JSONObject, where: str) -> Iterator[FieldError]:
    """Yield the errors of all probes and lifecycle hooks of a container."""
    for name in PROBES:
        if name in container:
            yield from _validate_probe(container[name], f"{where}.{name}", name)
    if "lifecycle" in container:
        for hook in HOOKS:
            if hook in container["lifecycle"]:
                yield from _validate_handler(container["lifecycle"][hook], f"{where}.lifecycle.{hook}")


def _validate_probe(probe: JSONObject, where: str, name: str) -> Iterator[FieldError]:
    yield from _validate_handler(probe, where)
    for field in NUMBERS:
        if probe.get(field, 0) < 0:
            yield invalid(f"{where}.{field}", probe[field], "must be greater than or equal to 0")
    if name != "readinessProbe" and probe["successThreshold"] != 1:
        yield invalid(f"{where}.successThreshold", probe["successThreshold"], "must be 1")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and name == "readinessProbe":
        yield invalid(f"{where}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
    elif grace is not None and grace <= 0:
        yield invalid(f"{where}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _validate_handler(handler: JSONObject, where: str) -> Iterator[FieldError]:
    handlers = [name for name in HANDLERS if name in handler]
    if not handlers:
        yield required_error(where, "must specify a handler type")
    for extra in handlers[1:]:
        yield forbidden(f"{where}.{extra}", "may not specify more than 1 handler type")
    for name in handlers[:1]:
        yield from _validate_action(name, handler[name], f"{where}.{name}")


def _validate_action(name: str, action: JSONObject, where: str) -> Iterator[FieldError]:
    match name:
        case "exec" if not action.get("command"):
            yield required_error(f"{where}.command")
        case "httpGet":
            yield from _validate_target_port(action["port"], f"{where}.port")
            yield from validate_choice(action["scheme"], SCHEMES, f"{where}.scheme")
        case "tcpSocket":
            yield from _validate_target_port(action["port"], f"{where}.port")
        case "grpc":
            yield from validate_port(action["port"], f"{where}.port")
        case "sleep" if action["seconds"] < 0:
            yield invalid(where, action["seconds"], "must be greater than or equal to 0")


def _validate_target_port(port: int | str, where: str) -> Iterator[FieldError]:
    errors = port_errors(port) if isinstance(port, int) else port_name_errors(port)
    yield from all_invalid(where, port, errors)
