"""hostPath volumes: files and directories of this machine, checked against the type of the volume."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from localkube.kubelet.spec.podspec import SpecError

CHECKS: Final[dict[str, tuple[str, Callable[[Path], bool]]]] = {
    "Directory": ("a directory", Path.is_dir),
    "DirectoryOrCreate": ("a directory", Path.is_dir),
    "File": ("a file", Path.is_file),
    "FileOrCreate": ("a file", Path.is_file),
    "Socket": ("a Unix socket", Path.is_socket),
    "CharDevice": ("a character device", Path.is_char_device),
    "BlockDevice": ("a block device", Path.is_block_device),
}


def prepare(path: Path, kind: str) -> Path:
    """Return the path, created if its type allows; raise `SpecError` if it does not have the type."""
    if kind == "DirectoryOrCreate" and not path.exists():
        path.mkdir(parents=True, mode=0o755)
    if kind == "FileOrCreate" and not path.exists():
        if not path.parent.is_dir():
            raise SpecError(f"hostPath type check failed: {path}: its directory does not exist; create it first")
        path.touch(mode=0o644)
    if kind:
        if kind not in CHECKS:
            raise SpecError(f'hostPath.type: unsupported value "{kind}": must be one of {", ".join(CHECKS)}')
        noun, check = CHECKS[kind]
        if not check(path):
            raise SpecError(f"hostPath type check failed: {path} is not {noun}")
    if not path.exists():
        raise SpecError(
            f"hostPath.path: {path} does not exist on this machine; create it or set type DirectoryOrCreate"
        )
    return path
