"""Packs local files into a stream, and extracts archives. No files are written outside the destination.

Archives from containers are not trusted. Devices, pipes, and members whose path or link target is outside the
destination are rejected. Members are not written through links that lead outside. In a link target, `..` is allowed
only at the start and from an existing directory, because other targets could depend on later links. The size of
member headers is limited, because `tarfile` keeps them in memory.
"""

import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self, TypeAlias, cast

from lwsctl.cli.errors import CommandError

Stream: TypeAlias = IO[bytes]

PLAIN_MODE: Final = 0o777
"""The mode bits that are preserved. They exclude set-user-ID, set-group-ID and sticky bits."""


HEADERS_LIMIT: Final = 2**20
"""The maximum size of the headers of a member in bytes.

Includes long names, extended headers and sparse file maps.
"""

INVALID: Final = "the archive from the container is truncated or invalid"

SHOWN_NAME: Final = 200
"""The maximum number of characters of a member name in an error message."""


def pack(stream: Stream, source: Path, name: str) -> None:
    """Write a file or directory to a stream as `name`, without its owner."""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        archive.add(source, arcname=name, filter=_without_owner)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(stream: Stream, destination: Path, name: str) -> int:
    """Extract a stream with one top-level name to `destination / name`. Return the number of files.

    The destination must exist.
    """
    root = destination.resolve()
    count = 0
    bounded = _BoundedHeaders(stream)
    with _named_errors(), tarfile.open(fileobj=cast("Stream", bounded), mode="r|", tarinfo=_Header) as archive:
        for member in bounded.members(archive):
            target = target_path(member.name, root, name)
            if member.isdir():
                _path_inside(target, root, member.name).mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                _write(archive, member, target, root)
                count += 1
            elif member.issym():
                _link(member, target, root)
            elif member.islnk():
                _copy_linked(member, target, root, name)
                count += 1
            else:
                raise CommandError(f"{_escape(member.name)} is not copied, because it is a device or a pipe")
    return count


class _Header(tarfile.TarInfo):
    """Raises an error for blocks that `tarfile` would treat as the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed lacks the error of a block of zeros
            raise
        except tarfile.HeaderError as error:
            raise CommandError(f"{INVALID}: {error}") from error


@contextmanager
def _named_errors() -> Iterator[None]:
    """Convert a `tarfile` error about a truncated or invalid archive to a command error."""
    try:
        yield
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise CommandError(f"{INVALID}: {error}") from error


class _BoundedHeaders:
    """A stream that raises an error if `tarfile` reads too many bytes before it finds the next member."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._left: int | None = HEADERS_LIMIT

    def read(self, size: int) -> bytes:
        """Return `size` bytes, or fewer bytes at the end of the stream."""
        data = self._stream.read(size)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise CommandError(f"the archive from the container has headers that exceed {HEADERS_LIMIT} bytes")
        return data

    def members(self, archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        """Yield the members. The size limit does not apply to the content of a member, which the caller reads."""
        while (member := archive.next()) is not None:
            self._left = None
            yield member
            self._left = HEADERS_LIMIT


def target_path(member: str, root: Path, name: str) -> Path:
    """Return the path of an extracted member, with its first part replaced by `name`.

    Reject paths outside the destination.

    >>> target_path("./logs/a.txt", Path("/tmp"), "out")
    PosixPath('/tmp/out/a.txt')
    """
    path = PurePosixPath(member)
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or ".." in parts or not parts:
        raise CommandError(f"{_escape(member)} is not extracted, because it is outside the destination")
    return root.joinpath(name, *parts[1:])


def _escape(name: str) -> str:
    return repr(name if len(name) <= SHOWN_NAME else f"{name[:SHOWN_NAME]}…")


def _path_inside(target: Path, root: Path, member: str) -> Path:
    """Return the target path. Raise an error if a link in the path leads outside the destination."""
    real = Path(os.path.realpath(target))
    if real != root and root not in real.parents:
        raise CommandError(f"{_escape(member)} is not extracted, because a link places it outside the destination")
    return target


def _prepare_target(target: Path, root: Path, member: str) -> Path:
    """Return the path to which a member is written. Create its directory without following links."""
    parent = Path(os.path.realpath(_path_inside(target.parent, root, member)))
    parent.mkdir(parents=True, exist_ok=True)
    place = parent / target.name
    if place.is_symlink():
        _path_inside(place, root, member)
        place.unlink()
    return place


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, root: Path) -> None:
    place = _prepare_target(target, root, member.name)
    content = archive.extractfile(member)
    if content is None:
        raise CommandError(f"{_escape(member.name)} cannot be read from the archive")
    with place.open("wb") as file:
        while piece := content.read(1 << 16):
            file.write(piece)
    place.chmod(member.mode & PLAIN_MODE)


def _link(member: tarfile.TarInfo, target: Path, root: Path) -> None:
    """Create a symbolic link if its target is inside the destination."""
    place = _prepare_target(target, root, member.name)
    link = PurePosixPath(member.linkname)
    pointed = Path(os.path.realpath(place.parent / link))
    is_inside = pointed == root or root in pointed.parents
    downwards = dropwhile("..".__eq__, link.parts)
    if link.is_absolute() or ".." in downwards or not is_inside:
        raise CommandError(
            f"{_escape(member.name)} is not extracted, because it links to {_escape(member.linkname)}, outside the destination"
        )
    place.symlink_to(member.linkname)


def _copy_linked(member: tarfile.TarInfo, target: Path, root: Path, name: str) -> None:
    first = _path_inside(target_path(member.linkname, root, name), root, member.linkname)
    if not first.is_file():
        raise CommandError(
            f"{_escape(member.name)} is not extracted, because it links to {_escape(member.linkname)}, which was not copied"
        )
    content = first.read_bytes()
    _prepare_target(target, root, member.name).write_bytes(content)


class ChunkReader:
    """A file-like object for `tarfile` that reads the received chunks of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._chunks = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return `size` bytes, or fewer bytes at the end of the stream."""
        parts = [self._rest]
        length = len(self._rest)
        while length < size and (piece := next(self._chunks, b"")):
            parts.append(piece)
            length += len(piece)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]
