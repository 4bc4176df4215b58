"""Validates the containers of a pod, and returns the same errors as kube-apiserver.

Input: the pod spec after defaulting. Output: errors. `Names` contains the names that containers can reference.
"""

from collections.abc import Collection, Iterator

from msgspec import Struct

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules import restart_rules
from kuberuntime.objects.podrules.env_rules import validate_env, validate_env_from
from kuberuntime.objects.podrules.probe_rules import port_name_errors, validate_probes
from kuberuntime.objects.podrules.resource_rules import validate_resources
from kuberuntime.objects.podrules.values import duplicate, forbidden, not_found, validate_choice, validate_port

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
CONTAINER_LISTS = ("containers", "initContainers")
NOT_FOR_INIT = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


class Names(Struct, frozen=True):
    """The names that containers can reference, which are valid volumes and resource claims of the pod."""

    volumes: Collection[str]
    claims: Collection[str] = ()


def validate(spec: JSONObject, declared: Names, path: str) -> Iterator[FieldError]:
    """Yield the errors of all containers and init containers."""
    if not spec.get("containers"):
        yield required_error(f"{path}.containers")
    seen: set[str] = set()
    for field in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            yield from _validate_name(container["name"], seen, f"{where}.name")
            seen.add(container["name"])
            yield from _validate_container(container, declared, where)
            yield from restart_rules.validate(container, where, is_init=field == "initContainers")
            if field == "initContainers":
                yield from _validate_init(container, where)


def _validate_name(name: str, seen: Collection[str], path: str) -> Iterator[FieldError]:
    if not name:
        yield required_error(path)
    elif name in seen:
        yield duplicate(path, name)
    else:
        yield from all_invalid(path, name, names.dns_1123_label(name))


def _validate_init(container: JSONObject, where: str) -> Iterator[FieldError]:
    if container.get("restartPolicy") == "Always":
        return
    for name in NOT_FOR_INIT:
        if name in container:
            yield forbidden(f"{where}.{name}", "may not be set for init containers without restartPolicy=Always")


def _validate_container(container: JSONObject, declared: Names, where: str) -> Iterator[FieldError]:
    image = container.get("image", "")
    if not image:
        yield required_error(f"{where}.image")
    elif image != image.strip():
        yield invalid(f"{where}.image", image, "must not have leading or trailing whitespace")
    yield from validate_choice(container["imagePullPolicy"], PULL_POLICIES, f"{where}.imagePullPolicy")
    yield from validate_choice(
        container["terminationMessagePolicy"], MESSAGE_POLICIES, f"{where}.terminationMessagePolicy"
    )
    if "ports" in container:
        yield from _validate_ports(container["ports"], f"{where}.ports")
    if "env" in container:
        yield from validate_env(container["env"], f"{where}.env")
    if "envFrom" in container:
        yield from validate_env_from(container["envFrom"], f"{where}.envFrom")
    if "volumeMounts" in container:
        yield from _validate_mounts(container["volumeMounts"], declared.volumes, f"{where}.volumeMounts")
    if container["resources"]:
        yield from validate_resources(container["resources"], declared.claims, f"{where}.resources")
    yield from validate_probes(container, where)


def _validate_ports(ports: list[JSONObject], where: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path = f"{where}[{index}]"
        name = port.get("name", "")
        if name:
            yield from all_invalid(f"{path}.name", name, port_name_errors(name))
            if name in seen:
                yield duplicate(f"{path}.name", name)
            seen.add(name)
        if not port["containerPort"]:
            yield required_error(f"{path}.containerPort")
        else:
            yield from validate_port(port["containerPort"], f"{path}.containerPort")
        if port.get("hostPort"):
            yield from validate_port(port["hostPort"], f"{path}.hostPort")
        yield from validate_choice(port["protocol"], PROTOCOLS, f"{path}.protocol")


def _validate_mounts(mounts: list[JSONObject], volumes: Collection[str], where: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        path = f"{where}[{index}]"
        if not mount["name"]:
            yield required_error(f"{path}.name")
        if mount["name"] not in volumes:
            yield not_found(f"{path}.name", mount["name"])
        if not mount["mountPath"]:
            yield required_error(f"{path}.mountPath")
        elif mount["mountPath"] in seen:
            yield invalid(f"{path}.mountPath", mount["mountPath"], "must be unique")
        seen.add(mount["mountPath"])
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield invalid(f"{path}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
        for name in ("subPath", "subPathExpr"):
            if name in mount:
                yield from validate_local_path(mount[name], f"{where}.{name}")
        if "mountPropagation" in mount:
            yield from validate_choice(mount["mountPropagation"], PROPAGATIONS, f"{path}.mountPropagation")


def validate_local_path(text: str, where: str) -> Iterator[FieldError]:
    """Yield the errors of a path that must not escape its parent directory."""
    if text.startswith("/"):
        yield invalid(where, text, "must be a relative path")
    if ".." in text.split("/"):
        yield invalid(where, text, "must not contain '..'")
