"""Opens paths in a directory whose content a container controls, and can change at any time.

Every component is opened relative to the previous one, without following links: a symbolic link is read, and its parts
are opened in the same way. So the opened file is the checked file, even if it is replaced in the meantime. The result
is a descriptor (`O_PATH`): use the file by it, never by its path again.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40


class PathEscapeError(Exception):
    """A path refers to a file outside its directory."""


class OpenOptions(NamedTuple):
    """The options of an open call: what is created if it is missing, its permissions, and allowed link targets.

    `is_root`: the directory is the root of a container, so absolute links and `..` end there, as after chroot; else they
    raise `PathEscapeError`.
    """

    is_root: bool = False
    creates_directories: bool = False
    creates_file: bool = False
    mode: int = 0o777


@contextmanager
def open_in_root(root: str | int, path: str, options: OpenOptions = OpenOptions()) -> Iterator[int]:  # noqa: B008 - immutable
    """Yield a descriptor of `path` in `root`, and close it afterwards."""
    handle = open_inside(root, path, options)
    try:
        yield handle
    finally:
        os.close(handle)


def open_inside(root: str | int, path: str, options: OpenOptions = OpenOptions()) -> int:  # noqa: B008 - immutable
    """Return a descriptor of `path` in the directory `root`. Follow `root` if it is a link."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
    walk = _Walk(os.dup(root) if isinstance(root, int) else os.open(root, flags), options, path)
    try:
        return walk.run()
    finally:
        walk.close()


def is_directory(handle: int) -> bool:
    """Return whether a descriptor refers to a directory."""
    return stat.S_ISDIR(os.fstat(handle).st_mode)


class _Walk:
    """The open directories from the root to the current position, so that `..` does not need file system access."""

    def __init__(self, root: int, options: OpenOptions, path: str) -> None:
        self._open = [root]
        self._options = options
        self._path = path
        self._pending = parts(path)
        self._links_followed = 0

    def run(self) -> int:
        while self._pending:
            part = self._pending.pop(0)
            if part == "..":
                self._ascend()
            else:
                self._descend(part)
        return os.dup(self._open[-1])

    def close(self) -> None:
        for handle in self._open:
            os.close(handle)

    def _ascend(self) -> None:
        if len(self._open) > 1:
            os.close(self._open.pop())
        elif not self._options.is_root:
            raise PathEscapeError(self._path)

    def _descend(self, part: str) -> None:
        handle = self._enter(part)
        if not stat.S_ISLNK(os.fstat(handle).st_mode):
            self._open.append(handle)
            return
        try:
            target = os.readlink("", dir_fd=handle)
        finally:
            os.close(handle)
        self._follow(target)

    def _follow(self, target: str) -> None:
        self._links_followed += 1
        if self._links_followed > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._path)
        if target.startswith("/"):
            if not self._options.is_root:
                raise PathEscapeError(self._path)
            while len(self._open) > 1:
                os.close(self._open.pop())
        self._pending = parts(target) + self._pending

    def _enter(self, part: str) -> int:
        """Open one component, and create it if requested. Retry if it is created or removed concurrently."""
        for _ in range(_MAX_LINKS):
            try:
                return os.open(part, _FLAGS, dir_fd=self._open[-1])
            except FileNotFoundError:
                if not self._make(part):
                    raise
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._path) from error
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), self._path)

    def _make(self, part: str) -> bool:
        is_file = self._options.creates_file and not self._pending
        if not is_file and not self._options.creates_directories:
            return False
        with suppress(FileExistsError):
            if is_file:
                os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, self._options.mode, dir_fd=self._open[-1]))
            else:
                os.mkdir(part, self._options.mode, dir_fd=self._open[-1])
        return True


def parts(path: str) -> list[str]:
    """Return the components of a path."""
    return [part for part in path.split("/") if part not in ("", ".")]
