"""Archives of local files: written as a stream, and unpacked so that no file is written outside of the destination.

Archives from containers are not trusted: a member whose path, or whose link, leads outside of the destination is an
error; so is a device or a pipe. No member is written through a link that leads outside. A link may lead up only at the
beginning of its target, from a directory that exists: what comes after `..` elsewhere would depend on later links.
"""

import os
import tarfile
from collections.abc import Iterator
from itertools import dropwhile
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


def _free(target: Path, root: Path, member: str) -> Path:
    """Return where to write a member: in its real directory, which is made, and not through a link of its name."""
    parent = Path(os.path.realpath(_inside(target.parent, root, member)))
    parent.mkdir(parents=True, exist_ok=True)
    place = parent / target.name
    if place.is_symlink():
        _inside(place, root, member)
        place.unlink()
    return place


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, root: Path) -> None:
    place = _free(target, root, member.name)
    content = archive.extractfile(member)
    if content is None:
        raise CommandError(f"{member.name!r} cannot be read from the archive")
    with place.open("wb") as file:
        while piece := content.read(1 << 16):
            file.write(piece)
    place.chmod(member.mode & PLAIN_MODE)


def _link(member: tarfile.TarInfo, target: Path, root: Path) -> None:
    """Make a symbolic link, if its target is inside of the destination."""
    place = _free(target, root, member.name)
    wanted = PurePosixPath(member.linkname)
    pointed = Path(os.path.realpath(place.parent / wanted))
    is_inside = pointed == root or root in pointed.parents
    downwards = dropwhile("..".__eq__, wanted.parts)
    if wanted.is_absolute() or ".." in downwards or not is_inside:
        raise CommandError(
            f"{member.name!r} is a link to {member.linkname!r}, out of the destination: it is not unpacked"
        )
    place.symlink_to(member.linkname)


def _copy_linked(member: tarfile.TarInfo, target: Path, root: Path, name: str) -> None:
    first = _inside(placed(member.linkname, root, name), root, member.linkname)
    if not first.is_file():
        raise CommandError(
            f"{member.name!r} is a link to {member.linkname!r}, which was not copied: it is not unpacked"
        )
    content = first.read_bytes()
    _free(target, root, member.name).write_bytes(content)


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
