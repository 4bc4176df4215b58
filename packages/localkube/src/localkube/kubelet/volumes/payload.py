"""Builds the files of configMap, secret, downwardAPI and projected volumes, without I/O.

In: the volume of the pod's specification, and the values it refers to. Out: bytes and mode by relative path.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import fieldref
from localkube.kubelet.spec.environment import EnvironmentInputs
from localkube.kubelet.spec.podspec import SpecError

DEFAULT_MODE: Final = 0o644


class File(Struct, frozen=True):
    """One file of a volume."""

    content: bytes
    mode: int


Payload: TypeAlias = dict[str, File]

SERVED: Final = ("configMap", "secret", "downwardAPI")
FAMILIES: Final = (*SERVED, "projected")


def is_written(volume: JSONObject) -> bool:
    """Return whether the kubelet writes the files of the volume."""
    return any(volume.get(family) is not None for family in FAMILIES)


def build(volume: JSONObject, context: EnvironmentInputs) -> Payload:
    """Return the files of a volume. Raise `SpecError` for missing sources."""
    for family in FAMILIES:
        if volume.get(family) is not None:
            return _source_files(family, volume[family], context)
    raise SpecError(f'volume "{volume["name"]}" does not contain files')


def references(volume: JSONObject) -> tuple[set[str], set[str]]:
    """Return the names of the ConfigMaps and the Secrets in the volume."""
    sources = [volume, *((volume.get("projected") or {}).get("sources") or [])]
    config_maps = {source["configMap"].get("name") or "" for source in sources if source.get("configMap")}
    return config_maps, {_secret_name(source["secret"]) for source in sources if source.get("secret")}


def _source_files(family: str, source: JSONObject, context: EnvironmentInputs) -> Payload:
    mode = source.get("defaultMode")
    default = DEFAULT_MODE if mode is None else int(mode)
    if family != "projected":
        return _source(family, source, context, default)
    files: Payload = {}
    for projection in source.get("sources") or []:
        for kind, body in projection.items():
            if kind in SERVED or not context.is_dry_run:
                files |= _source(kind, body or {}, context, default)
    return files


def _source(kind: str, source: JSONObject, context: EnvironmentInputs, mode: int) -> Payload:
    match kind:
        case "configMap":
            return _key_files("configmap", source.get("name") or "", source, context, mode)
        case "secret":
            return _key_files("secret", _secret_name(source), source, context, mode)
        case "downwardAPI":
            return {
                _validate_path(item["path"]): _field_file(item, context, mode) for item in source.get("items") or []
            }
    raise SpecError(
        f"projected volumes on a local cluster support only configMap, secret and downwardAPI, not {kind}. Remove it, "
        "or use --stub"
    )


def _secret_name(source: JSONObject) -> str:
    """Return the name of the Secret, which is `secretName` in a volume and `name` in a projection."""
    return str(source.get("secretName") or source.get("name") or "")


def _key_files(kind: str, name: str, source: JSONObject, context: EnvironmentInputs, mode: int) -> Payload:
    optional = bool(source.get("optional")) or context.skips_missing_sources
    data = context.sources.files(name) if kind == "configmap" else context.sources.secrets.get(name)
    if data is None and not optional:
        raise SpecError(f'{kind} "{name}" not found')
    if source.get("items") is None:
        return {key: File(content, mode) for key, content in (data or {}).items()}
    files: Payload = {}
    for item in source["items"]:
        content = (data or {}).get(item["key"])
        if content is not None:
            files[_validate_path(item["path"])] = File(content, _file_mode(item, mode))
        elif not optional:
            raise SpecError(f"{kind} {meta.namespace(context.pod)}/{name} has no key {item['key']}")
    return files


def _field_file(item: JSONObject, context: EnvironmentInputs, mode: int) -> File:
    if item.get("fieldRef"):
        text = fieldref.field_value(context.pod, item["fieldRef"]["fieldPath"], context.ip, context.node)
    else:
        text = fieldref.resource_value(context.pod, {"name": ""}, item.get("resourceFieldRef") or {}, context.node)
    return File(text.encode(), _file_mode(item, mode))


def _file_mode(item: Mapping[str, int], default: int) -> int:
    mode = item.get("mode")
    return default if mode is None else int(mode)


def _validate_path(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or parts[0].startswith(".."):
        raise SpecError(f'items[].path: invalid value "{path}": must be a relative path without ".."')
    return str(PurePosixPath(*parts))
