"""Performs a mount plan in the mount namespace of a container that is being started.

The new root is put together at a mount point of the launcher's own, from the host's tree as it still is, and becomes /
at the end. Directories are always bound with what is mounted below them: in a user namespace the kernel allows nothing
else, as a bare bind could uncover what a mount hides.
"""

import errno
import os
import stat
from typing import NamedTuple

from . import syscalls
from .mountplan import Bind, Cover, Place, Plan, on_host

_PSEUDO = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
_CGROUPS = "sys/fs/cgroup"
_UNUSABLE = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTCONN, errno.ESTALE, errno.ELOOP, errno.EINVAL}


class HostView:
    """The view of the real file system that a plan is made with."""

    def is_directory(self, path: str) -> bool | None:
        """Return whether the path (not followed) is a directory; None when there is nothing."""
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def link(self, path: str) -> str | None:
        """Return where a symbolic link points; None when it is none."""
        try:
            return os.readlink(path)
        except OSError:
            return None


class Root(NamedTuple):
    """How the container's / is made: from which directory, at which mount point, and with what in it."""

    source: str
    point: str
    plan: Plan
    read_only: bool
    own_sysfs: bool
    guard_kernel: bool


def build_root(root: Root) -> None:
    """Mount the container's file system and make it /. The caller is in a mount namespace of its own."""
    if not any(cover.target == "/" for cover in root.plan.covers):
        bind(root.source, root.point)
    for cover in root.plan.covers:
        _cover(cover, on_host(root.point, cover.target))
    for place in root.plan.places:
        _make_place(on_host(root.point, place.target), directory=place.directory)
    if root.read_only:
        syscalls.make_read_only(root.point, recursive=True)
    for step in root.plan.mounts:
        target = on_host(root.point, step.target)
        match step:
            case Place():
                _make_place(target, directory=step.directory)
            case Bind():
                bind(step.source, target)
                if step.read_only:
                    syscalls.make_read_only(target, recursive=False)
    _mount_kernel_views(root)
    syscalls.change_root(root.point)


def bind(source: str, target: str) -> None:
    """Mount a file, a directory with all below it, or a symbolic link as such, at `target`."""
    try:
        handle = os.open(source, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            recursive = syscalls.MS_REC if stat.S_ISDIR(os.fstat(handle).st_mode) else 0
            syscalls.mount(None, f"/proc/self/fd/{handle}", target, syscalls.MS_BIND | recursive)
        finally:
            os.close(handle)
    except OSError as error:
        number = error.errno or 0
        raise OSError(number, f"mount {source}: {os.strerror(number).lower()}") from error


def _cover(cover: Cover, target: str) -> None:
    mode = stat.S_IMODE(os.lstat(cover.source).st_mode)
    syscalls.mount("tmpfs", "tmpfs", target, syscalls.MS_NOSUID | syscalls.MS_NODEV, f"mode={mode:o}")
    with os.scandir(cover.source) as entries:
        for entry in entries:
            _repeat(entry, f"{target}/{entry.name}")


def _repeat(entry: "os.DirEntry[str]", place: str) -> None:
    """Show an entry of a covered directory again; leave out what could not be used either, or just went away."""
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


def _make_place(target: str, *, directory: bool) -> None:
    if os.path.lexists(target):
        return
    if directory:
        os.makedirs(target)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.mknod(target)


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
