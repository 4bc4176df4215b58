"""Performs a mount plan in the mount namespace of a starting container.

The new root is assembled from the host's tree at a mount point of the launcher, and becomes / at the end. Directories
are always bound with the mounts below them: in a user namespace the kernel allows only this, as another bind could
reveal files that a mount hides.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from localkube.kubelet.processes import safeopen
from localkube.kubelet.processes.kernelerrors import RequestError

from . import syscalls
from .mountplan import Bind, Cover, Place, Plan, is_below, on_host

_PSEUDO = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
_CGROUPS = "sys/fs/cgroup"
_UNUSABLE = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTCONN, errno.ESTALE, errno.ELOOP, errno.EINVAL}


class HostView:
    """Reads the real file system for a plan."""

    def is_directory(self, path: str) -> bool | None:
        """Return whether the path is a directory, without following links, or None if it does not exist."""
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def link(self, path: str) -> str | None:
        """Return the target of a symbolic link, or None for other files."""
        try:
            return os.readlink(path)
        except OSError:
            return None


class Root(NamedTuple):
    """The root directory of the container: its source directory, its mount point, and its mounts."""

    source: str
    point: str
    plan: Plan
    read_only: bool
    own_sysfs: bool
    guard_kernel: bool


def build_root(root: Root) -> None:
    """Mount the container's file system and make it the root. The caller must be in a separate mount namespace."""
    if not any(cover.target == "/" for cover in root.plan.covers):
        bind(root.source, root.point)
    for cover in root.plan.covers:
        _cover(cover, on_host(root.point, cover.target))
    tree = _Tree(root.point)
    for place in root.plan.places:
        tree.make(place)
    if root.read_only:
        syscalls.make_read_only(root.point, recursive=True)
    for step in root.plan.mounts:
        match step:
            case Place():
                tree.make(step)
            case Bind():
                tree.bind(step)
    _mount_kernel_views(root)
    syscalls.change_root(root.point)


def bind(source: str, target: str) -> None:
    """Mount a file, a directory with its mounts, or a symbolic link as such, at `target`."""
    try:
        handle = os.open(source, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _bind_handle(handle, target)
        finally:
            os.close(handle)
    except OSError as error:
        number = error.errno or 0
        raise OSError(number, f"mount {source}: {os.strerror(number).lower()}") from error


def _bind_handle(handle: int, target: str) -> None:
    recursive = syscalls.MS_REC if safeopen.is_directory(handle) else 0
    syscalls.mount(None, f"/proc/self/fd/{handle}", target, syscalls.MS_BIND | recursive)


class _Tree:
    """The new root during its assembly, with a record of its mounts.

    A mount point inside a volume is opened from the root of the volume, and no link may lead out of it: other pods may
    write into the volume at the same time, and outside of it is the host.
    """

    def __init__(self, point: str) -> None:
        self._point = point
        self._mounted: list[str] = []

    def make(self, place: Place) -> None:
        """Create a mount point if it does not exist."""
        mode = 0o755 if place.is_directory else 0o644
        options = safeopen.OpenOptions(creates_directories=True, creates_file=not place.is_directory, mode=mode)
        with self._open(place.target, options):
            return

    def bind(self, step: Bind) -> None:
        """Mount at a mount point."""
        with self._open(step.target) as place:
            if step.opened is None:
                bind(step.source, f"/proc/self/fd/{place}")
            else:
                _bind_handle(step.opened.handle, f"/proc/self/fd/{place}")
        self._mounted.append(step.target)
        if step.read_only:
            with self._open(step.target) as mounted:
                syscalls.make_read_only(f"/proc/self/fd/{mounted}", recursive=False)

    @contextmanager
    def _open(self, target: str, options: safeopen.OpenOptions = safeopen.OpenOptions()) -> Iterator[int]:  # noqa: B008 - immutable
        volume = max((other for other in self._mounted if is_below(target, other)), key=len, default=None)
        if volume is None:
            with safeopen.open_in_root(self._point, target, options._replace(is_root=True)) as place:
                yield place
            return
        with self._open(volume) as inside:
            try:
                place = safeopen.open_inside(inside, target[len(volume) :], options)
            except safeopen.PathEscapeError as error:
                raise RequestError(
                    f"mount at {target}: a symbolic link in the volume at {volume} leads outside the volume"
                ) from error
        try:
            yield place
        finally:
            os.close(place)


def _cover(cover: Cover, target: str) -> None:
    mode = stat.S_IMODE(os.lstat(cover.source).st_mode)
    syscalls.mount("tmpfs", "tmpfs", target, syscalls.MS_NOSUID | syscalls.MS_NODEV, f"mode={mode:o}")
    with os.scandir(cover.source) as entries:
        for entry in entries:
            _bind_entry(entry, f"{target}/{entry.name}")


def _bind_entry(entry: "os.DirEntry[str]", place: str) -> None:
    """Bind an entry of a covered directory. Skip entries that are unusable or were just removed."""
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), place)
        return
    directory = entry.is_dir(follow_symlinks=False)
    if directory:
        os.mkdir(place)
    else:
        os.mknod(place)
    try:
        syscalls.mount(None, entry.path, place, syscalls.MS_BIND | (syscalls.MS_REC if directory else 0))
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        (os.rmdir if directory else os.unlink)(place)


def _mount_kernel_views(root: Root) -> None:
    proc = on_host(root.point, "proc")
    syscalls.mount("proc", "proc", proc, _PSEUDO)
    if root.guard_kernel:
        for name in ("sys", "sysrq-trigger"):
            path = f"{proc}/{name}"
            if os.path.lexists(path):
                bind(path, path)
                syscalls.make_read_only(path, recursive=False)
    if root.own_sysfs:
        syscalls.mount("sysfs", "sysfs", on_host(root.point, "sys"), _PSEUDO | syscalls.MS_RDONLY)
        if os.path.isdir(f"/{_CGROUPS}"):
            bind(f"/{_CGROUPS}", on_host(root.point, _CGROUPS))
