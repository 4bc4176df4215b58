"""Archives of local files: written as a stream, and unpacked so that no file is written outside of the destination.

Archives from containers are not trusted: a member whose path, or whose link, leads outside of the destination is an
error; so is a device or a pipe. No member is written through a link that leads outside.
"""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, TypeAlias

from leaderworkerset.cli.errors import CommandError

Stream: TypeAlias = IO[bytes]

PLAIN_MODE: Final = 0o777
"""The bits of a mode that are kept: never set-user-ID, set-group-ID or sticky."""


def pack(stream: Stream, source: Path, name: str) -> None:
    """Write a file or a directory into a stream, called `name` there, without its owner."""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        archive.add(source, arcname=name, filter=_without_owner)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(stream: Stream, destination: Path, name: str) -> int:
    """Unpack a stream whose members are below one name, and put them below `destination / name`; return how many files.

    The destination must exist.
    """
    root = destination.resolve()
    count = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            target = placed(member.name, root, name)
            if member.isdir():
                _inside(target, root, member.name).mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                _write(archive, member, target, root)
                count += 1
            elif member.issym():
                _link(member, target, root)
            elif member.islnk():
                _copy_linked(member, target, root, name)
                count += 1
            else:
                raise CommandError(f"{member.name!r} is a device or a pipe: it is not copied")
    return count


def placed(member: str, root: Path, name: str) -> Path:
    """Return where a member is written: its first part is replaced by `name`; a path that leads outside is an error.

    >>> placed("./logs/a.txt", Path("/tmp"), "out")
    PosixPath('/tmp/out/a.txt')
    """
    path = PurePosixPath(member)
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or ".." in parts or not parts:
        raise CommandError(f"{member!r} leads out of the destination: it is not unpacked")
    return root.joinpath(name, *parts[1:])


def _inside(target: Path, root: Path, member: str) -> Path:
    """Return the target, unless links on the way to it lead outside of the destination."""
    real = Path(os.path.realpath(target))
    if real != root and root not in real.parents:
        raise CommandError(f"{member!r} leads out of the destination through a link: it is not unpacked")
    return target


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, root: Path) -> None:
    _clear(_inside(target, root, member.name))
    target.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    if content is None:
        raise CommandError(f"{member.name!r} cannot be read from the archive")
    with target.open("wb") as file:
        while piece := content.read(1 << 16):
            file.write(piece)
    target.chmod(member.mode & PLAIN_MODE)


def _link(member: tarfile.TarInfo, target: Path, root: Path) -> None:
    """Make a symbolic link, if its target is inside of the destination."""
    pointed = Path(os.path.realpath(target.parent / member.linkname))
    if PurePosixPath(member.linkname).is_absolute() or (pointed != root and root not in pointed.parents):
        raise CommandError(
            f"{member.name!r} is a link to {member.linkname!r}, out of the destination: it is not unpacked"
        )
    _clear(_inside(target.parent, root, member.name) / target.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(member.linkname)


def _copy_linked(member: tarfile.TarInfo, target: Path, root: Path, name: str) -> None:
    """Write the content of the earlier member that a hard link refers to."""
    first = placed(member.linkname, root, name)
    content = _inside(first, root, member.linkname).read_bytes()
    _clear(_inside(target, root, member.name))
    target.write_bytes(content)


def _clear(target: Path) -> None:
    """Remove a link in place of a file to be written, so that it is not written through."""
    if target.is_symlink():
        target.unlink()


class Pieces:
    """A file-like reader of pieces of bytes as they arrive, which `tarfile` reads as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer at the end."""
        parts = [self._rest]
        length = len(self._rest)
        while length < size and (piece := next(self._pieces, b"")):
            parts.append(piece)
            length += len(piece)
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size]
