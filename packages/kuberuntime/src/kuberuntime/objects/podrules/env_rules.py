"""Validates the environment of a container, and returns the same errors as kube-apiserver."""

import re
from collections.abc import Iterator

from kuberuntime.objects import names
from kuberuntime.objects.field import FieldError, all_invalid, invalid, not_supported, required_error
from kuberuntime.objects.meta import JSONObject

SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
REFERABLE = {
    *FIELD_PATHS, "metadata.annotations", "metadata.labels", "spec.host", "spec.restartPolicy", "spec.schedulerName",
    "status.phase",
}  # fmt: skip
"""All fields that can be referenced."""

SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(?P<key>.*)'\]")

ENV_NAME = re.compile(r"[ -<>-~]+")
ENV_NAME_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def validate_env(variables: list[JSONObject], where: str) -> Iterator[FieldError]:
    """Yield the errors of the environment variables of a container."""
    for index, variable in enumerate(variables):
        name = variable["name"]
        if not name:
            yield required_error(f"{where}[{index}].name")
        elif not ENV_NAME.fullmatch(name):
            yield invalid(f"{where}[{index}].name", name, ENV_NAME_TEXT)
        if "valueFrom" in variable:
            yield from _validate_source(variable, f"{where}[{index}].valueFrom")


def _validate_source(variable: JSONObject, where: str) -> Iterator[FieldError]:
    source = variable["valueFrom"]
    sources = [name for name in SOURCES if name in source]
    if not sources:
        kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(where, "", f"must specify one of: {kinds}")
    elif variable.get("value"):
        yield invalid(where, "", "may not be specified when `value` is not empty")
    if len(sources) > 1:
        yield invalid(where, "", "may not have more than one field specified at a time")
    if "fieldRef" in source:
        yield from validate_field_ref(source["fieldRef"], f"{where}.fieldRef", FIELD_PATHS)
    if "resourceFieldRef" in source and not source["resourceFieldRef"]["resource"]:
        yield required_error(f"{where}.resourceFieldRef.resource")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name not in source:
            continue
        target = source[name].get("name", "")
        yield from all_invalid(f"{where}.{name}.name", target, names.dns_1123_subdomain(target))
        if not source[name]["key"]:
            yield required_error(f"{where}.{name}.key")


def validate_field_ref(reference: JSONObject, where: str, allowed: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield the errors of a reference to a pod field."""
    path = reference["fieldPath"]
    if not path:
        yield required_error(f"{where}.fieldPath")
        return
    subscript = SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        yield from all_invalid(where, subscript["key"], names.qualified_name(subscript["key"].lower()))
    elif path not in REFERABLE:
        yield invalid(f"{where}.fieldPath", path, f"error converting fieldPath: field label not supported: {path}")
    elif path not in allowed:
        yield not_supported(f"{where}.fieldPath", path, sorted(allowed))


def validate_env_from(sources: list[JSONObject], where: str) -> Iterator[FieldError]:
    """Yield the errors of the `envFrom` sources."""
    for index, source in enumerate(sources):
        path = f"{where}[{index}]"
        references = [name for name in ("configMapRef", "secretRef") if name in source]
        if not references:
            yield invalid(where, "", "must specify one of: `configMapRef` or `secretRef`")
        if len(references) > 1:
            yield invalid(where, "", "may not have more than one field specified at a time")
        if source.get("prefix") and not ENV_NAME.fullmatch(source["prefix"]):
            yield invalid(f"{path}.prefix", source["prefix"], ENV_NAME_TEXT)
        for name in references:
            if not source[name].get("name"):
                yield required_error(f"{path}.{name}.name")
