"""Checks that only this user can write files that contain credentials or commands.

The directories and symbolic links of the path are checked from the root downwards, so that no other user can replace
a path that was already checked. If a check fails, an `OwnershipError` is raised.
"""

import os
import stat
from pathlib import Path
from typing import Final

from kuberuntime.errors import ConfigError

ROOT: Final = 0
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
LINKS_LIMIT: Final = 40
"""The maximum number of symbolic links in a path, as in Linux."""


class OwnershipError(ConfigError):
    """A different user owns or can replace a file or directory. The message contains its path and the fix."""


def require_own(path: Path) -> None:
    """Raise an error unless this user owns the path, and only this user and root can replace it or a parent directory.

    Raise `OSError` if the path does not exist.
    """
    place = _walk(path)
    _require_owner(path, path.lstat())
    _require_owner(place, place.stat())


def require_private(directory: Path) -> None:
    """Raise an error unless this user owns the directory and all its entries, and no other user may write to it."""
    require_own(directory)
    _require_not_writable(directory, directory.stat(), allows_sticky=False)
    for entry in directory.iterdir():
        _require_owner(entry, entry.lstat())


def _walk(path: Path) -> Path:
    """Check the parent directories of a path, and return the path without symbolic links."""
    place, pending, links = Path("/"), list(path.absolute().parts[1:]), 0
    while pending:
        part = pending.pop(0)
        if part == "..":
            place = place.parent
            continue
        status = (place / part).lstat()
        if stat.S_ISLNK(status.st_mode):
            links += 1
            _require_safe_parent(place / part, status)
            if links > LINKS_LIMIT:
                raise OwnershipError(
                    f"{path}: contains too many symbolic links. Specify the real path of the directory"
                )
            target = (place / part).readlink()
            place = Path("/") if target.is_absolute() else place
            pending[:0] = [part for part in target.parts if part != "/"]
            continue
        place /= part
        if pending:
            _require_safe_parent(place, status)
            _require_not_writable(place, status, allows_sticky=True)
    return place


def _require_safe_parent(place: Path, status: os.stat_result) -> None:
    """Raise an error if a different user owns a parent directory or a symbolic link.

    Root accepts other owners, for example in a container whose home directory is mounted.
    """
    if os.geteuid() != ROOT and status.st_uid not in (ROOT, os.geteuid()):
        raise OwnershipError(
            f"{place}: belongs to user {status.st_uid}, who can replace its contents. Use a different directory"
        )


def _require_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise OwnershipError(
            f"{path}: belongs to user {status.st_uid}, but the current user is {os.geteuid()}. Run the command as its "
            "owner, or use your own directory"
        )


def _require_not_writable(place: Path, status: os.stat_result, *, allows_sticky: bool) -> None:
    """Raise an error if other users may write to a directory.

    In a sticky directory, users cannot replace files of other users.
    """
    if allows_sticky and status.st_mode & stat.S_ISVTX:
        return
    writable = status.st_mode & OTHERS_WRITE
    if writable == stat.S_IWGRP and _is_own_group(status.st_gid):
        return
    if writable:
        raise OwnershipError(
            f"{place}: other users have write permission (mode {stat.S_IMODE(status.st_mode):04o}). Run `chmod go-w "
            f"{place}`, or use your own directory"
        )


def _is_own_group(gid: int) -> bool:
    """Return whether only this user or root is in the group, as in the personal groups of many systems."""
    import grp  # most machines do not need these modules
    import pwd

    if gid == ROOT:
        return True
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
