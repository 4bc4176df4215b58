"""Builds the environment, command and arguments of a container, without I/O.

Order of an environment, later entries override earlier ones: variables of the host, `envFrom`, `env`. `$(NAME)` refers
to earlier entries, `$$` is a dollar sign, an unknown name is not replaced.

The host's search paths, language and time zone are inherited (`PASSED`); a container with its own root file system
inherits nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import fieldref, podspec
from localkube.kubelet.spec.fieldref import NodeFacts
from localkube.kubelet.spec.podspec import SpecError

PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
CONTAINER_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFERENCE: Final = re.compile(r"\$(?:\$|\((?P<name>[^)]*)\))")


class ReferencedObjects(msgspec.Struct, frozen=True):
    """The existing ConfigMaps and Secrets of the pod's namespace by name, with their values as bytes.

    The `binaryData` of ConfigMaps is separate: files contain it, variables do not (the kubelet's
    `makeEnvironmentVariables`).
    """

    config_maps: Mapping[str, Mapping[str, bytes]]
    secrets: Mapping[str, Mapping[str, bytes]]
    binary: Mapping[str, Mapping[str, bytes]] = msgspec.field(default_factory=dict)

    def files(self, config_map: str) -> Mapping[str, bytes] | None:
        """Return the files for a ConfigMap in a volume, or None if the ConfigMap does not exist."""
        texts = self.config_maps.get(config_map)
        return None if texts is None else {**texts, **self.binary.get(config_map, {})}


class EnvironmentInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs for the variables and files of a container.

    With `skips_missing_sources`, missing sources are skipped. In a `is_dry_run`, volumes and tokens that are not served are empty.
    `devices` has the real devices of each container, None if GPUs are simulated.
    """

    pod: JSONObject
    ip: str
    node: NodeFacts
    sources: ReferencedObjects
    skips_missing_sources: bool = False
    is_dry_run: bool = False
    devices: Mapping[str, Sequence[str]] | None = None


def host_variables(host: Mapping[str, str], *, own_root: bool) -> dict[str, str]:
    """Return the variables of the host, or only a default search path if the container has a separate root."""
    if own_root:
        return {"PATH": CONTAINER_PATH, "HOME": "/root"}
    return {"PATH": CONTAINER_PATH} | {name: host[name] for name in PASSED if name in host}


def use_environment(variables: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the variables with the executables of a virtual environment first in the search path."""
    active = {"VIRTUAL_ENV": str(directory)} if (directory / "pyvenv.cfg").exists() else {}
    return {**variables, **active, "PATH": f"{directory / 'bin'}:{variables.get('PATH', CONTAINER_PATH)}"}


def build(container: JSONObject, context: EnvironmentInputs, base: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the container. Raise `SpecError` if a source is missing."""
    variables = {**base, "HOSTNAME": podspec.hostname(context.pod)}
    for source in container.get("envFrom") or []:
        variables |= _from_source(source, context)
    for entry in container.get("env") or []:
        value = _variable_value(entry, container, context, variables)
        if value is not None:
            variables[entry["name"]] = value
    podspec.require_no_nul(variables, f"containers[{container['name']}]: env")
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the value of the variable.

    >>> expand("$(A)-$$(A)-$(B)-$A-$$", {"A": "1"})
    '1-$(A)-$(B)-$A-$'
    """

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        return "$" if name is None else variables.get(name, match[0])

    closed = text.rfind(")") + 1  # no reference is closed later; a search from every `$(` would take quadratic time
    return REFERENCE.sub(replace, text[:closed]) + text[closed:].replace("$$", "$")


def expand_all(texts: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Expand a command or its arguments."""
    return tuple(expand(text, variables) for text in texts)


def references(container: JSONObject) -> tuple[set[str], set[str]]:
    """Return the names of the ConfigMaps and Secrets to which the container's variables refer."""
    names_by_kind: tuple[set[str], set[str]] = (set(), set())
    entries: Sequence[JSONObject] = [
        *(container.get("envFrom") or []),
        *((entry.get("valueFrom") or {}) for entry in container.get("env") or []),
    ]
    for entry in entries:
        for names, fields in zip(
            names_by_kind, (("configMapRef", "configMapKeyRef"), ("secretRef", "secretKeyRef")), strict=True
        ):
            names.update(entry[field].get("name") or "" for field in fields if entry.get(field))
    return names_by_kind


def _from_source(source: JSONObject, context: EnvironmentInputs) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for kind, field, objects in _referable(context.sources, "Ref"):
        reference = source.get(field)
        if reference is None:
            continue
        data = objects.get(reference.get("name") or "")
        if data is None:
            _report_missing(f'{kind} "{reference.get("name")}" not found', reference, context)
            return {}
        return {prefix + key: value.decode(errors="replace") for key, value in sorted(data.items())}
    return {}


def _referable(
    sources: ReferencedObjects, suffix: str
) -> tuple[tuple[str, str, Mapping[str, Mapping[str, bytes]]], ...]:
    return (
        ("configmap", f"configMap{suffix}", sources.config_maps),
        ("secret", f"secret{suffix}", sources.secrets),
    )


def _variable_value(
    entry: JSONObject, container: JSONObject, context: EnvironmentInputs, variables: Mapping[str, str]
) -> str | None:
    """Return the value of one entry, or None for an optional reference without a target."""
    origin = entry.get("valueFrom")
    if not origin:
        return expand(entry.get("value") or "", variables)
    if origin.get("fieldRef"):
        return fieldref.field_value(context.pod, origin["fieldRef"]["fieldPath"], context.ip, context.node)
    if origin.get("resourceFieldRef"):
        return fieldref.resource_value(context.pod, container, origin["resourceFieldRef"], context.node)
    for kind, field, objects in _referable(context.sources, "KeyRef"):
        if origin.get(field):
            return _key_value(kind, origin[field], objects, context)
    raise SpecError(
        f'container "{container["name"]}", env "{entry["name"]}": valueFrom must be one of fieldRef, resourceFieldRef, '
        f"configMapKeyRef, secretKeyRef, not {', '.join(origin) or 'empty'}"
    )


def _key_value(
    kind: str, reference: JSONObject, objects: Mapping[str, Mapping[str, bytes]], context: EnvironmentInputs
) -> str | None:
    name, key = reference.get("name") or "", reference["key"]
    data = objects.get(name)
    if data is None:
        _report_missing(f'{kind} "{name}" not found', reference, context)
        return None
    if key not in data:
        namespace = meta.namespace(context.pod)
        _report_missing(f"couldn't find key {key} in {kind} {namespace}/{name}", reference, context)
        return None
    return data[key].decode(errors="replace")


def _report_missing(text: str, reference: JSONObject, context: EnvironmentInputs) -> None:
    if not (reference.get("optional") or context.skips_missing_sources):
        raise SpecError(text)
