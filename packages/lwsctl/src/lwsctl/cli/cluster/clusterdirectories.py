"""Manages the directories of local clusters, and determines which clusters are running.

Each cluster has its own directory below `$LWS_STATE_HOME`, `$XDG_STATE_HOME/lws` or `~/.local/state/lws`. The cluster
process holds a lock on the file `lock` in this directory. The kernel releases the lock when the process exits for any
reason. Therefore, a stale file never means that a cluster is running.

If a different user owns or can replace a directory, it is not read, because its kubeconfig may start executables, and
its lock contains a process ID.

Only directories that `lws` created are removed. A directory with the file `lock` is removed if the user requests it. A
directory with the file `create_ephemeral`, which `lws run` creates, is removed by the next `lws run`.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kuberuntime.access import filepermissions
from kuberuntime.errors import KubeError
from lwsctl.cli.errors import CommandError, UsageError

DEFAULT: Final = "default"
EPHEMERAL: Final = "run-"
"""The name prefix of clusters that `lws run` creates for one run and then removes."""

SET_HOME: Final = "set LWS_STATE_HOME to a writable directory"

KEPT_RUNS: Final = 5
"""The maximum number of failed runs whose records are kept. Older records are deleted."""

LONGEST_PID: Final = 20
LARGEST_PID: Final = 2**31

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


OPTIONS: Final = "options.json"
"""The file that contains the options of a cluster (`cli.local.keptoptions`)."""


class _Mapped(Struct, frozen=True):
    images: tuple[tuple[str, str], ...] = ()


class ClusterDirectory(Struct, frozen=True):
    """The directory of a cluster, and its files."""

    name: str
    directory: Path
    is_ephemeral: bool = False

    @property
    def kubeconfig(self) -> Path:
        """Return the kubeconfig file for the owner of the cluster, which has mode 0600."""
        return self.directory / "kubeconfig"

    @property
    def database(self) -> Path:
        """Return the file that stores all objects."""
        return self.directory / "state.db"

    @property
    def log(self) -> Path:
        """Return the log file of a detached cluster."""
        return self.directory / "cluster.log"

    @property
    def older_log(self) -> Path:
        """Return the previous log file."""
        return self.directory / "cluster.log.1"

    @property
    def history(self) -> Path:
        """Return the directory in which the recorder stores group failures."""
        return self.directory / "history"

    @property
    def marker_file(self) -> Path:
        """Return the marker file for directories that `lws run` created and is allowed to delete."""
        return self.directory / "ephemeral"

    @property
    def lock(self) -> Path:
        """Return the lock file of the running cluster, which contains the process ID."""
        return self.directory / "lock"

    @property
    def until_done(self) -> Path:
        """Return the file that exists while `lws run` waits for all ranks to complete."""
        return self.directory / "until-done"

    def mapped_images(self) -> tuple[str, ...] | None:
        """Return the images that the cluster maps to directories, or None if its options are unknown."""
        try:
            options = msgspec.json.decode((self.directory / OPTIONS).read_bytes(), type=_Mapped)
        except (OSError, msgspec.MsgspecError):
            return None
        return tuple(name for name, _ in options.images)

    def pid(self) -> int | None:
        """Return the process ID of the running cluster, or None if it is not running."""
        try:
            with self.lock.open() as file:
                if _try_lock(file.fileno()):
                    return None
                pid = int(file.read(LONGEST_PID).strip() or 0)
                return pid if 0 < pid < LARGEST_PID else None
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            raise unusable_directory_error(error) from error

    @property
    def options_text(self) -> str:
        """Return the options that select this cluster, for hints."""
        return "--local" if self.name == DEFAULT else f"--local={self.name}"

    @property
    def is_cluster(self) -> bool:
        """Return whether the directory belongs to a cluster, based on its lock file."""
        return self.lock.is_file()

    def require_private(self) -> None:
        """Raise an error if a different user owns or can replace the directory or a file in it."""
        try:
            filepermissions.require_private(self.directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise unusable_directory_error(error) from error

    def is_locked_by(self, pid: int) -> bool:
        """Return whether a process has opened the lock file. Only processes of this user are visible."""
        with contextlib.suppress(OSError):
            lock = self.lock.stat()
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed in the meantime
                    if os.path.samestat(lock, file.stat()):
                        return True
        return False

    def create_private(self) -> None:
        """Make the directory and its content private. Reject a directory that does not contain cluster data."""
        try:
            content = {path.name for path in self.directory.iterdir()} if self.directory.exists() else set()
        except OSError as error:
            raise unusable_directory_error(error) from error
        strange = content - {self.log.name, self.older_log.name}
        if strange and not self.is_cluster:
            raise CommandError(
                f"{self.directory} is not a cluster directory, because it contains {min(strange)!r}; use a different name or LWS_STATE_HOME"
            )
        from localkube.cluster import LocalkubeError, make_private

        try:
            make_private(self.directory)
        except LocalkubeError as error:
            raise CommandError(f"{error}; {SET_HOME}") from error

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the cluster's lock while the context is active. The directory is created with mode 0700, or its mode is changed."""
        from localkube.cluster import open_private

        self.create_private()
        try:
            file = open_private(self.lock)
        except OSError as error:
            raise unusable_directory_error(error) from error
        with file:
            if not _try_lock(file.fileno()):
                raise CommandError(
                    f"cluster {self.name} is already running (process {self.pid() or 'unknown'}); use `lws down {self.name}` to stop it"
                )
            try:
                file.truncate(0)
                file.write(f"{os.getpid()}\n".encode())
                file.flush()
                if self.is_ephemeral:
                    self.marker_file.touch()
            except OSError as error:  # the disk is full
                with contextlib.suppress(OSError):
                    file.close()
                raise CommandError(f"{self.lock}: {error.strerror}") from error
            yield

    def remove(self) -> None:
        """Delete the directory with all data. Reject directories that do not belong to a cluster."""
        if not (self.is_cluster or self.is_ephemeral or self.marker_file.is_file() or self._has_only_logs):
            raise CommandError(
                f"{self.directory} is not a cluster directory (file {self.lock.name} is missing); nothing was deleted"
            )
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def _has_only_logs(self) -> bool:
        """Return whether the directory contains only files that `remove_unstarted` keeps."""
        files = set(self.directory.iterdir()) if self.directory.is_dir() else set()
        return bool(files) and files <= {self.log, self.older_log}

    def remove_unstarted(self) -> None:
        """Delete the files of a cluster that never ran. The log remains, because it explains the failed start."""
        for path in self.directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path not in (self.log, self.older_log):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.directory.rmdir()  # unless there is a log

    @property
    def records(self) -> Path | None:
        """Return the directory of recorded failures, or None if neither a cluster nor a record exists."""
        return self.history if self.is_cluster or self.has_record else None

    @property
    def has_record(self) -> bool:
        """Return whether group failures are recorded."""
        return any(self.history.glob("*/*/*/*.json"))

    def remove_except_record(self) -> None:
        """Delete the directory of a run. The recorded failures remain, because `lws history` reads them."""
        if not self.has_record:
            return shutil.rmtree(self.directory, ignore_errors=True)
        for path in self.directory.iterdir():
            if path.is_dir() and path != self.history:
                shutil.rmtree(path, ignore_errors=True)
            elif path not in (self.history, self.marker_file):
                path.unlink(missing_ok=True)
        return None


def unusable_directory_error(error: OSError) -> CommandError:
    """Return the error for a state directory that cannot be used."""
    return CommandError(f"{error.filename}: {error.strerror}; {SET_HOME}")


def _try_lock(descriptor: int) -> bool:
    import fcntl  # not available on Windows, which has no local clusters

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def home() -> Path:
    """Return the directory of all local clusters of this user."""
    if own := os.environ.get("LWS_STATE_HOME"):
        return Path(own)
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "lws"
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".local" / "state" / "lws"
    raise CommandError(f"the home directory is unknown; {SET_HOME}")


def cluster_directory(name: str) -> ClusterDirectory:
    """Return the directory of the cluster with this name. Raise an error if other users can access it."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"cluster name: Invalid value: {name!r}: must be at most 40 lowercase letters, digits or '-', and must start and end with a letter or digit"
        )
    directory = ClusterDirectory(name, home() / name)
    directory.require_private()
    return directory


def find_by_kubeconfig(path: Path) -> ClusterDirectory | None:
    """Return the directory of the local cluster that a kubeconfig belongs to, or None."""
    if path.name != "kubeconfig":  # the name that local clusters use
        return None
    directory = ClusterDirectory(path.parent.name, path.parent)
    try:
        directory.require_private()
    except (KubeError, CommandError):
        return None
    return directory


def all_directories() -> list[ClusterDirectory]:
    """Return the directories of all local clusters of this user, including stopped clusters."""
    try:
        directories = [ClusterDirectory(path.name, path) for path in sorted(home().iterdir()) if path.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable_directory_error(error) from error
    return [directory for directory in directories if find_by_kubeconfig(directory.kubeconfig)]


def create_ephemeral() -> ClusterDirectory:
    """Create a directory for one `lws run`. Before, delete directories of killed runs and old records."""
    ended = [
        directory
        for directory in all_directories()
        if directory.name.startswith(EPHEMERAL) and directory.marker_file.is_file() and directory.pid() is None
    ]
    for stale in ended:
        stale.remove_except_record()
    recorded = sorted(
        (directory for directory in ended if directory.has_record),
        key=lambda directory: directory.history.stat().st_mtime_ns,
    )
    for old in recorded[:-KEPT_RUNS]:
        old.remove()
    names = (f"{EPHEMERAL}{os.getpid()}" + (f"-{number}" if number else "") for number in count())
    return next(fresh for fresh in map(_create, names) if fresh is not None)


def _create(name: str) -> ClusterDirectory | None:
    """Create a directory for one run. Return None if this user already has a cluster with this name."""
    fresh = ClusterDirectory(name, home() / name, is_ephemeral=True)
    try:
        fresh.directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.directory.mkdir(mode=0o700)
    except FileExistsError as error:
        if Path(error.filename) == fresh.directory:
            return None
        raise unusable_directory_error(error) from error  # a file exists instead of the directory of all clusters
    except OSError as error:
        raise unusable_directory_error(error) from error
    return fresh
