"""Writing the files of a volume so that readers see either all of the old ones or all of the new ones.

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
    """Make the volume show exactly these files; return whether anything had to change. `stamp` names the version."""
    volume.mkdir(parents=True, exist_ok=True)
    current = volume / DATA
    if current.is_symlink() and _read(current) == payload:
        return False
    version = volume / f"..{stamp}"
    version.mkdir()
    for path, file in payload.items():
        _write_file(version / path, file)
    old = current.resolve() if current.is_symlink() else None
    _swap(current, version.name)
    _link(volume, payload)
    if old is not None and old != version:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _read(directory: Path) -> Payload:
    """Return the files there are, so that an unchanged volume is left alone."""
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


def _swap(link: Path, target: str) -> None:
    fresh = link.with_name("..data_tmp")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def _link(volume: Path, payload: Payload) -> None:
    """Show the first part of every path as a link into the current version, and drop links to what is gone."""
    wanted = {path.split("/", 1)[0] for path in payload}
    for entry in volume.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in wanted:
            entry.unlink()
    for name in wanted:
        link = volume / name
        if not link.is_symlink():
            link.symlink_to(f"{DATA}/{name}")
