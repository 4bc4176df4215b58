"""Restricts the state directory of a cluster to its owner, because it contains secrets and credentials.

In: a directory, which may already exist with any mode. Out: a directory of mode 0700 whose files have mode 0600,
whatever the umask; or a `StateDirectoryError` if something in it belongs to another user.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from kuberuntime.access import filepermissions
from kuberuntime.access.filepermissions import OwnershipError
from localkube.errors import LocalkubeError

DATABASE: Final = "state.db"
"""The file with the objects of the cluster."""

KUBECONFIG: Final = "kubeconfig"
"""The file with which clients connect to the cluster."""

PRIVATE: Final = stat.S_IRWXU
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class StateDirectoryError(LocalkubeError):
    """The directory cannot be used. The message contains the invalid part and the solution."""


def make_private(directory: Path) -> None:
    """Create the directory and its parents. If it exists, remove the permissions of other users on it and its files.

    A symbolic link to a directory is followed if both belong to this user. Directories in it keep their modes: other
    users cannot reach them.
    """
    try:
        _make(directory)
        filepermissions.require_own(directory)
        directory.chmod(PRIVATE)
        filepermissions.require_private(directory)
        for path in sorted(directory.iterdir()):
            _restrict(path)
    except OwnershipError as error:
        raise StateDirectoryError(str(error)) from error
    except OSError as error:
        raise StateDirectoryError(f"{error.filename}: {error.strerror}") from error


def _make(directory: Path) -> None:
    """Create a directory and its parents for this user only, because other users must not replace a parent."""
    if directory.is_dir():
        return
    for missing in (*reversed(directory.parents), directory):
        if not missing.is_dir():
            missing.mkdir(mode=PRIVATE, exist_ok=True)
            missing.chmod(PRIVATE)  # independent of the umask


def _restrict(path: Path) -> None:
    """Remove the permissions of other users on a file. Directories are not changed."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) and not path.is_dir():
        raise StateDirectoryError(f"{path} is a symbolic link. Replace it with a regular file")
    if stat.S_ISREG(mode) and mode & OTHERS:
        path.chmod(stat.S_IMODE(mode) & ~OTHERS)


def open_private(path: Path) -> BinaryIO:
    """Open a file for appending. A new file is accessible only to this user."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR), "a+b")


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, so that it is accessible only to this user."""
    import tempfile  # importing this module is fast

    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # created with mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
