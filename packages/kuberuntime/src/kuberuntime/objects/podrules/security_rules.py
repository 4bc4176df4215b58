"""Validates the security settings of pods and containers, and returns the same errors as kube-apiserver."""

import re
from collections.abc import Iterator

from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import forbidden

MAX_ID = 2147483647
ID_TEXT = f"must be between 0 and {MAX_ID}, inclusive"
SYSCTL_MAX = 253
SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
HOST_NAMESPACES = ("hostIPC", "hostNetwork", "hostPID")
CONTAINER_LISTS = ("initContainers", "containers")


def validate(spec: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield all errors of the security settings."""
    context = spec.get("securityContext") or {}
    where = f"{path}.securityContext"
    yield from _validate_ids(context, ("fsGroup", "runAsUser", "runAsGroup"), where)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= MAX_ID:
            yield invalid(f"{where}.supplementalGroups[{index}]", group, ID_TEXT)
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        if len(sysctl["name"]) > SYSCTL_MAX or not re.match(SYSCTL, sysctl["name"]):
            text = f"must have at most {SYSCTL_MAX} characters and match regex {SYSCTL}"
            yield invalid(f"{where}.sysctls[{index}].name", sysctl["name"], text)
    if spec.get("hostUsers") is False:
        for name in HOST_NAMESPACES:
            if spec.get(name):
                yield forbidden(f"{path}.{name}", "when `hostUsers` is false")
    for field in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(field) or ()):
            yield from _validate_container(container, f"{path}.{field}[{index}].securityContext")


def _validate_container(container: JSONObject, where: str) -> Iterator[FieldError]:
    context = container.get("securityContext") or {}
    yield from _validate_ids(context, ("runAsUser", "runAsGroup"), where)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(where, context, text)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(where, context, text)


def _validate_ids(context: JSONObject, names: tuple[str, ...], where: str) -> Iterator[FieldError]:
    for name in names:
        if not 0 <= context.get(name, 0) <= MAX_ID:
            yield invalid(f"{where}.{name}", context[name], ID_TEXT)
