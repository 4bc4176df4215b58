"""The directories of a pod's volumes: created before its first container, updated, and deleted with the pod.

| volume | is |
|---|---|
| emptyDir, ephemeral | a directory of the pod, open to all users; `medium: Memory` and size limits are ignored |
| configMap, secret, downwardAPI, projected | files of the pod, replaced all at once when their source changes |
| hostPath | the path itself |
| persistentVolumeClaim | the hostPath or local path of the volume it is bound to |

Any other kind is refused by name. Under `lenient` it is an empty directory, and so is a hostPath that this machine lacks.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.environment import Context
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes import atomic, payload

SCRATCH: Final = ("emptyDir", "ephemeral")


class Claims(Struct, frozen=True):
    """The claims a pod refers to, and the persistent volumes those are bound to, by name."""

    claims: Mapping[str, JSONObject]
    volumes: Mapping[str, JSONObject]


def by_name(pod: JSONObject) -> dict[str, JSONObject]:
    """Return the pod's volumes by name."""
    return {volume["name"]: volume for volume in meta.spec(pod).get("volumes") or []}


def prepare(context: Context, bound: Claims, directory: Path, stamp: str) -> dict[str, Path]:
    """Prepare all volumes of the pod under `directory`; return their paths. Raise `SpecError` for missing sources."""
    return {
        name: _prepare(volume, context, bound, directory / name, stamp) for name, volume in by_name(context.pod).items()
    }


def has_written(pod: JSONObject) -> bool:
    """Return whether any volume of the pod has files that the kubelet writes."""
    return any(_is_written(volume) for volume in by_name(pod).values())


def refresh(context: Context, directory: Path, stamp: str) -> None:
    """Update files whose sources changed; if a source no longer exists, its files are kept."""
    for name, volume in by_name(context.pod).items():
        if _is_written(volume):
            with suppress(SpecError):
                atomic.write(directory / name, payload.build(volume, context), stamp)


def _is_written(volume: JSONObject) -> bool:
    return any(volume.get(family) is not None for family in payload.FAMILIES)


def _prepare(volume: JSONObject, context: Context, bound: Claims, path: Path, stamp: str) -> Path:
    podspec.require_no_nul(volume, f"volumes[{volume['name']}]")
    if _is_written(volume):
        atomic.write(path, payload.build(volume, context), stamp)
        return path
    host = volume.get("hostPath")
    if host is not None and not (context.lenient and not Path(host["path"]).exists()):
        return prepare_host_path(Path(host["path"]), host.get("type") or "")
    if volume.get("persistentVolumeClaim") is not None:
        name = volume["persistentVolumeClaim"]["claimName"]
        return _prepare_claim(name, bound)
    kinds = [kind for kind in volume if kind not in {"name", "hostPath"}]
    if not set(kinds) <= set(SCRATCH) and not context.lenient:
        raise SpecError(
            f'volume "{volume["name"]}": {", ".join(kinds)} volumes are not served on one machine; '
            "use hostPath, emptyDir or a persistentVolumeClaim, or rehearse with --stub"
        )
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    return path


def _prepare_claim(name: str, bound: Claims) -> Path:
    """Return the path of a claim's data, on this machine, in the persistent volume that it is bound to."""
    claim = bound.claims.get(name)
    if claim is None:
        raise SpecError(f'persistentvolumeclaim "{name}" not found')
    if meta.is_deleting(claim):
        raise SpecError(f'persistentvolumeclaim "{name}" is being deleted')
    volume = bound.volumes.get(meta.spec(claim).get("volumeName") or "")
    if volume is None:
        raise SpecError(f'persistentvolumeclaim "{name}" is not bound to a volume yet')
    source = meta.spec(volume)
    path = (source.get("hostPath") or source.get("local") or {}).get("path")
    if not path:
        raise SpecError(f'persistentvolume "{meta.name(volume)}" has no path here; only hostPath and local volumes do')
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


CHECKS: Final[dict[str, tuple[str, Callable[[Path], bool]]]] = {
    "Directory": ("a directory", Path.is_dir),
    "DirectoryOrCreate": ("a directory", Path.is_dir),
    "File": ("a file", Path.is_file),
    "FileOrCreate": ("a file", Path.is_file),
    "Socket": ("a Unix socket", Path.is_socket),
    "CharDevice": ("a character device", Path.is_char_device),
    "BlockDevice": ("a block device", Path.is_block_device),
}


def prepare_host_path(path: Path, kind: str) -> Path:
    """Return the path, created if its type allows; raise `SpecError` if it does not have the type."""
    if kind == "DirectoryOrCreate" and not path.exists():
        path.mkdir(parents=True, mode=0o755)
    if kind == "FileOrCreate" and not path.exists():
        if not path.parent.is_dir():
            raise SpecError(f"hostPath type check failed: {path}: its directory does not exist; create it first")
        path.touch(mode=0o644)
    if kind:
        noun, check = CHECKS[kind]
        if not check(path):
            raise SpecError(f"hostPath type check failed: {path} is not {noun}")
    if not path.exists():
        raise SpecError(
            f"hostPath.path: {path} does not exist on this machine; create it or set type DirectoryOrCreate"
        )
    return path
