"""Writes the files of a volume atomically, so that readers access either only old files or only new files.

```
volume/..2026_11_20_10_15_02.123456/key     the files
volume/..data -> ..2026_11_20_10_15_02.123456  swapped by rename
volume/key -> ..data/key                    what containers open
```
"""

import shutil
from pathlib import Path
from typing import Final

from localkube.kubelet.volumes.payload import File, Payload

DATA: Final = "..data"


def write(volume: Path, payload: Payload, stamp: str) -> bool:
    """Write exactly these files to the volume. Return whether they changed. `stamp` is the name of the version."""
    volume.mkdir(parents=True, exist_ok=True)
    current = volume / DATA
    if current.is_symlink() and _read_existing(current) == payload:
        return False
    version = volume / f"..{stamp}"
    version.mkdir()
    for path, file in payload.items():
        _write_file(version / path, file)
    old = current.resolve() if current.is_symlink() else None
    _replace_link(current, version.name)
    _link(volume, payload)
    if old is not None and old != version:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _read_existing(directory: Path) -> Payload:
    """Return the existing files, so that an unchanged volume is not written."""
    root = directory.resolve()
    return {
        str(path.relative_to(root)): File(path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in root.rglob("*")
        if path.is_file()
    }


def _write_file(path: Path, file: File) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    path.chmod(file.mode)


def _replace_link(link: Path, target: str) -> None:
    fresh = link.with_name("..data_tmp")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def _link(volume: Path, payload: Payload) -> None:
    """Link the first component of every path to the current version, and remove links to deleted files."""
    names = {path.split("/", 1)[0] for path in payload}
    for entry in volume.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in names:
        link = volume / name
        if not link.is_symlink():
            link.symlink_to(f"{DATA}/{name}")
