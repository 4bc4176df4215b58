"""Plans the mounts of a container, without I/O.

In: the directory of the container's /, the requested mounts, and a view of the file system. Out: steps in order, with
targets as paths in the container.

A mount needs a mount point. If the file system has none, one is provided without writing to it: the nearest existing
parent directory is covered (by a temporary file system into which every entry of the covered directory is bound), and
the mount point is created there. Below a volume there is no cover, since data that the container writes must reach the
volume; there the mount point is created in the volume itself, as other container runtimes do.
"""

import posixpath
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from localkube.kubelet.processes import safeopen

_MAX_LINKS = 40


class View(Protocol):
    """The read-only file system with the paths of the host."""

    def is_directory(self, path: str) -> bool | None:
        """Return whether the path is a directory, without following links, or None if it does not exist."""

    def link(self, path: str) -> str | None:
        """Return the target of a symbolic link, or None for other files."""


class OpenFile(NamedTuple):
    """A file or directory that is already open, because its path could refer to a different file later."""

    handle: int
    is_directory: bool


class Cover(NamedTuple):
    """Cover the directory `target` with a temporary file system whose entries are bound from `source`."""

    source: str
    target: str


class Place(NamedTuple):
    """Create an empty file or directory as a mount point, with its parents."""

    target: str
    is_directory: bool


class Bind(NamedTuple):
    """Mount a host file or directory `source`, or its open descriptor, at `target`. A link is bound as a link."""

    source: str
    target: str
    read_only: bool = False
    opened: OpenFile | None = None


class Plan(NamedTuple):
    """The steps in order. A `Place` among the mounts is in a volume that was mounted before."""

    covers: list[Cover]
    places: list[Place]
    mounts: list[Place | Bind]


def resolve(view: View, root: str, path: str) -> str:
    """Resolve symbolic links in `path` of a container whose / is `root`, without escaping from `root`."""
    pending, resolved, links = safeopen.parts(path), "/", 0
    while pending:
        part = pending.pop(0)
        if part == "..":
            resolved = posixpath.dirname(resolved)
            continue
        step = posixpath.join(resolved, part)
        target = view.link(on_host(root, step))
        if target is None:
            resolved = step
            continue
        links += 1
        if links > _MAX_LINKS:
            raise ValueError(f"{path}: too many symbolic links")
        resolved = "/" if target.startswith("/") else resolved
        pending = safeopen.parts(target) + pending
    return resolved


def plan(view: View, root: str, requests: Sequence[Bind], *, private: Sequence[str] = ()) -> Plan:
    """Plan the mounts of a container.

    `private` names directories that are always covered if they exist: files that the container creates in them are
    its own, while the host's entries stay visible.
    """
    binds = [request._replace(target=resolve(view, root, request.target)) for request in requests]
    covers: dict[str, Cover] = {}
    for target in private:
        resolved = resolve(view, root, target)
        if view.is_directory(on_host(root, resolved)):
            covers[resolved] = Cover(on_host(root, resolved), resolved)
    places: list[Place] = []
    mounts: list[Place | Bind] = []
    for bind in sorted(binds, key=lambda bind: len(safeopen.parts(bind.target))):
        place = Place(bind.target, _is_directory(view, bind))
        if any(isinstance(other, Bind) and is_below(bind.target, other.target) for other in mounts):
            mounts.append(place)
        elif view.is_directory(on_host(root, bind.target)) is None:
            above = _nearest_directory(view, root, bind.target)
            covers.setdefault(above, Cover(on_host(root, above), above))
            places.append(place)
        mounts.append(bind)
    return Plan(sorted(covers.values(), key=lambda cover: cover.target), places, mounts)


def on_host(root: str, path: str) -> str:
    """Return the host path of a container path."""
    return posixpath.normpath(root + "/" + path)


def _is_directory(view: View, bind: Bind) -> bool:
    return bind.opened.is_directory if bind.opened else view.is_directory(bind.source) is True


def _nearest_directory(view: View, root: str, target: str) -> str:
    above = posixpath.dirname(target)
    while above != "/" and not view.is_directory(on_host(root, above)):
        above = posixpath.dirname(above)
    return above


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is in the directory."""
    return path != directory and path.startswith(directory.rstrip("/") + "/")
