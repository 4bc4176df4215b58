"""Creates the directories of a pod's volumes before its first container, updates them, and deletes them with the pod.

| volume | is |
|---|---|
| emptyDir | a directory of the pod, open to all users; with `medium: Memory` in memory, where the sandbox has
namespaces |
| configMap, secret, downwardAPI, projected | files of the pod, replaced all at once when their source changes |
| hostPath | the path itself |
| persistentVolumeClaim, ephemeral | the hostPath or local path of the volume that the claim is bound to |

Any other kind is refused by name. In a rehearsal it is an empty directory. For a persistent volume of another kind,
all its pods share the directory. Under `lenient` a missing hostPath is also an empty directory.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, podclaims, quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.environment import EnvironmentInputs
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes import atomicwriter, payload

SCRATCH: Final = ("emptyDir",)


class Claims(Struct, frozen=True):
    """The claims to which a pod refers, and their persistent volumes, by name.

    `stand_ins` has a directory for each persistent volume without a path here; None outside a rehearsal.
    """

    claims: Mapping[str, JSONObject]
    volumes: Mapping[str, JSONObject]
    stand_ins: Path | None = None


def volumes_by_name(pod: JSONObject) -> dict[str, JSONObject]:
    """Return the pod's volumes by name."""
    return {volume["name"]: volume for volume in meta.spec(pod).get("volumes") or []}


def prepare(context: EnvironmentInputs, bound: Claims, directory: Path, stamp: str) -> dict[str, Path]:
    """Prepare all volumes of the pod in `directory`. Return their paths, or raise `SpecError`."""
    return {
        name: _prepare(volume, context, bound, directory / name, stamp)
        for name, volume in volumes_by_name(context.pod).items()
    }


def memory_volumes(pod: JSONObject, directory: Path) -> tuple[tuple[str, int], ...]:
    """Return the directories of volumes with `medium: Memory`, and their size limits in bytes (0 if unlimited)."""
    empty_dirs = {name: volume["emptyDir"] for name, volume in volumes_by_name(pod).items() if volume.get("emptyDir")}
    return tuple(
        (str(directory / name), quantity.parse(source.get("sizeLimit") or "0").ceil())
        for name, source in empty_dirs.items()
        if source.get("medium") == "Memory"
    )


def has_written(pod: JSONObject) -> bool:
    """Return whether a volume of the pod contains files that the kubelet writes."""
    return any(payload.is_written(volume) for volume in volumes_by_name(pod).values())


def refresh(context: EnvironmentInputs, directory: Path, stamp: str) -> None:
    """Update files whose sources changed. If a source no longer exists, its files remain."""
    for name, volume in volumes_by_name(context.pod).items():
        if payload.is_written(volume):
            with suppress(SpecError):
                atomicwriter.write(directory / name, payload.build(volume, context), stamp)


def _prepare(volume: JSONObject, context: EnvironmentInputs, bound: Claims, path: Path, stamp: str) -> Path:
    podspec.require_no_nul(volume, f"volumes[{volume['name']}]")
    if payload.is_written(volume):
        atomicwriter.write(path, payload.build(volume, context), stamp)
        return path
    host = volume.get("hostPath")
    if host is not None and not (context.skips_missing_sources and not Path(host["path"]).exists()):
        return prepare_host_path(Path(host["path"]), host.get("type") or "")
    name = podclaims.claims_by_volume(context.pod).get(volume["name"])
    if name is not None:
        if (
            volume.get("ephemeral") is not None
            and name in bound.claims
            and not podclaims.is_claim_of_pod(bound.claims[name], meta.uid(context.pod))
        ):
            raise SpecError(f'persistentvolumeclaim "{name}" was not created for this pod. Delete or rename it')
        return _prepare_claim(name, bound)
    kinds = [kind for kind in volume if kind not in {"name", "hostPath"}]
    if not set(kinds) <= set(SCRATCH) and not (context.skips_missing_sources or context.is_dry_run):
        raise SpecError(
            f'volume "{volume["name"]}": {", ".join(kinds)} volumes are not supported on a local cluster. Use '
            "hostPath, emptyDir, a persistentVolumeClaim, or --stub"
        )
    return _allow_all_users(path)


def _allow_all_users(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    return path


def _prepare_claim(name: str, bound: Claims) -> Path:
    """Return the data path of a claim on this machine, in the persistent volume to which it is bound."""
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
    if not path and bound.stand_ins is not None:
        return _allow_all_users(bound.stand_ins / meta.name(volume))
    if not path:
        raise SpecError(
            f'persistentvolume "{meta.name(volume)}" must be a hostPath or local volume. Use --stub to replace it with '
            "a directory"
        )
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
    """Return the path, and create it if its type permits. Raise `SpecError` if it has a different type."""
    if kind == "DirectoryOrCreate" and not path.exists():
        path.mkdir(parents=True, mode=0o755)
    if kind == "FileOrCreate" and not path.exists():
        if not path.parent.is_dir():
            raise SpecError(f"hostPath type check failed: {path}: the parent directory does not exist. Create it first")
        path.touch(mode=0o644)
    if kind:
        noun, check = CHECKS[kind]
        if not check(path):
            raise SpecError(f"hostPath type check failed: {path} is not {noun}")
    if not path.exists():
        raise SpecError(
            f"hostPath.path: {path} does not exist on this machine. Create it, or set type DirectoryOrCreate"
        )
    return path
