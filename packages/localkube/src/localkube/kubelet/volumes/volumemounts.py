"""Builds the mounts of a container's volumes from `volumeMounts` with subPath and subPathExpr."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.processes import safeopen
from localkube.kubelet.processes.runner import Mount
from localkube.kubelet.spec import environment
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes.payload import is_written

MADE: Final = safeopen.OpenOptions(creates_directories=True)


def build(
    container: JSONObject, volumes: Mapping[str, JSONObject], directories: Mapping[str, Path], env: Mapping[str, str]
) -> tuple[Mount, ...]:
    """Return the mounts of the container. `volumes` and `directories` contain the volumes and their paths by name."""
    mounts = []
    for mount in container.get("volumeMounts") or []:
        name = mount["name"]
        if name not in directories:
            raise SpecError(
                f'container "{container["name"]}", volumeMounts: volume "{name}" does not exist in this pod'
            )
        sub_path = _sub_path(mount, directories[name], env)
        read_only = _is_read_only(mount, volumes[name])
        mounts.append(Mount(directories[name], mount["mountPath"], read_only=read_only, sub_path=sub_path))
    return tuple(mounts)


def _is_read_only(mount: JSONObject, volume: JSONObject) -> bool:
    """Return whether the mount is read-only, which is always true for volumes that the kubelet writes."""
    claim = volume.get("persistentVolumeClaim") or {}
    return bool(mount.get("readOnly")) or bool(claim.get("readOnly")) or is_written(volume)


def _sub_path(mount: JSONObject, directory: Path, env: Mapping[str, str]) -> str:
    """Return the subpath in the volume, or an empty string for the volume root. Create a missing directory.

    The path may be replaced until it is mounted, so the launcher opens it again with the same checks.
    """
    text = str(mount.get("subPath") or _expand(mount.get("subPathExpr") or "", env))
    if not text:
        return ""
    if text.startswith("/") or ".." in PurePosixPath(text).parts:
        raise SpecError(f'volumeMounts[].subPath: invalid value "{text}": must be a relative path without ".."')
    try:
        with safeopen.open_in_root(str(directory), text, MADE):
            return text
    except safeopen.PathEscapeError as error:
        raise SpecError(
            f'volumeMounts[].subPath: "{text}" leads outside volume "{mount["name"]}" through a symbolic link'
        ) from error


def _expand(expression: str, env: Mapping[str, str]) -> str:
    for match in environment.REFERENCE.finditer(expression):
        name = match["name"]
        if name is not None and name not in env:
            raise SpecError(f'volumeMounts[].subPathExpr: "{expression}": variable "{name}" does not exist')
    return environment.expand(expression, env)
