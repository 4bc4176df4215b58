"""Builds archives that depend only on their content: sorted, without owners, and with one timestamp.

In: files by their name in the archive. Out: a `.tar.gz` whose bytes are the same on every machine with the same zlib.
"""

import gzip
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path


def pack(members: Mapping[str, Path], folder: str, moment: int) -> bytes:
    """Return a `.tar.gz` archive of files in a single directory. `moment` is their time in seconds since 1970."""
    packed = BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=moment) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(members):
            content = members[name].read_bytes()
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime = len(content), moment
            entry.mode = 0o755 if members[name].stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, BytesIO(content))
    return packed.getvalue()


def below(root: Path, *places: str) -> dict[str, Path]:
    """Return the files of `root` at or below the given paths, without Python caches."""
    starts = [root / place for place in places]
    files = [path for start in starts for path in ([start] if start.is_file() else start.rglob("*")) if path.is_file()]
    return {path.relative_to(root).as_posix(): path for path in files if "__pycache__" not in path.parts}
