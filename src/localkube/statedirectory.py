"""The state directory of a cluster is its owner's alone: objects hold secrets, the kubeconfig and the key let anyone in.

In: a directory, which may be there from before, with any mode. Out: a directory of mode 0700 whose files are of mode
0600, whatever the umask; or a `StateDirectoryError` where something in it is someone else's.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from localkube.errors import LocalkubeError

DATABASE: Final = "state.db"
"""The file with the objects of the cluster."""

KUBECONFIG: Final = "kubeconfig"
"""The file that lets clients in."""

PRIVATE: Final = stat.S_IRWXU
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class StateDirectoryError(LocalkubeError):
    """The directory cannot be used; the text names what is invalid and says what to do."""


def make_private(directory: Path) -> None:
    """Make the directory, with those above it, or take away what others may do with it and the files in it.

    A symbolic link to a directory is followed if both are this user's. Directories in it keep their modes: nobody else
    gets to them.
    """
    try:
        _make(directory)
        _require_own(directory)
        directory.chmod(PRIVATE)
        for path in sorted(directory.iterdir()):
            _restrict(path)
    except OSError as error:
        raise StateDirectoryError(
            f"{error.filename}: {error.strerror}; choose a directory that you may write to"
        ) from error


def _make(directory: Path) -> None:
    """Make a directory and those above it, for this user alone: who may rename one of them may replace the last."""
    if directory.is_dir():
        return
    for missing in (*reversed(directory.parents), directory):
        if not missing.is_dir():
            missing.mkdir(mode=PRIVATE, exist_ok=True)
            missing.chmod(PRIVATE)  # whatever the umask


def _restrict(path: Path) -> None:
    """Take away what others may do with a file; directories keep theirs."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) and not path.is_dir():
        raise StateDirectoryError(f"{path}: is a symbolic link: put the file itself there")
    if not stat.S_ISREG(mode):
        return
    _require_own(path)
    if mode & OTHERS:
        path.chmod(stat.S_IMODE(mode) & ~OTHERS)


def _require_own(path: Path) -> None:
    for status in (path.lstat(), path.stat()):  # a link, and what it leads to
        if status.st_uid != os.geteuid():
            raise StateDirectoryError(
                f"{path}: belongs to user {status.st_uid}, and this is user {os.geteuid()}: start the cluster as its "
                "owner, or choose a directory of your own"
            )


def open_private(path: Path) -> BinaryIO:
    """Open a file to append to it; a new one is this user's alone."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR), "a+b")
