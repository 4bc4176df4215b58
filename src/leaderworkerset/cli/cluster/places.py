"""Where embedded clusters live on this machine, and which of them run.

Each cluster has a directory of its own below `$LWS_STATE_HOME`, `$XDG_STATE_HOME/lws` or `~/.local/state/lws`. Whoever
runs the cluster holds a lock on the file `lock` in it; the kernel lets go of it with the process, however that ends, so
no stale file can claim that a cluster runs.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leaderworkerset.cli.errors import CommandError, UsageFault
from leaderworkerset.embedded.statedirectory import StateDirectoryError, append, make_private

DEFAULT: Final = "default"
EPHEMERAL: Final = "run-"
"""Clusters of `lws run`: made for one run, removed after it."""

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of one cluster, and what lies in it."""

    name: str
    directory: Path

    @property
    def kubeconfig(self) -> Path:
        """Return the file that lets its owner in; mode 0600."""
        return self.directory / "kubeconfig"

    @property
    def database(self) -> Path:
        """Return the file with all objects."""
        return self.directory / "state.db"

    @property
    def log(self) -> Path:
        """Return the log of a detached cluster."""
        return self.directory / "cluster.log"

    @property
    def lock(self) -> Path:
        """Return the file whose lock the running cluster holds; it contains the process ID."""
        return self.directory / "lock"

    def pid(self) -> int | None:
        """Return the ID of the process that runs the cluster, None if none does."""
        try:
            with self.lock.open() as file:
                if _try_lock(file.fileno()):
                    return None
                return int(file.read().strip() or 0) or None
        except (FileNotFoundError, ValueError):
            return None

    def make(self) -> None:
        """Make the directory, and take away what others may do with it and the files in it."""
        try:
            make_private(self.directory)
        except StateDirectoryError as error:
            raise CommandError(str(error)) from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Run the cluster here: make the directory, private (mode 0700) also if it was there, and hold its lock."""
        self.make()
        try:
            file = append(self.lock)
        except OSError as error:
            raise CommandError(
                f"{error.filename}: {error.strerror}; set LWS_STATE_HOME to a directory that you may write to"
            ) from error
        with file:
            if not _try_lock(file.fileno()):
                raise CommandError(
                    f"cluster {self.name} runs already (process {self.pid() or 'unknown'}); "
                    f"stop it with `lws down {self.name}`, or give another name"
                )
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
            file.flush()
            yield

    def remove(self) -> None:
        """Delete the directory and all data in it, and the directory of all clusters if this was the last."""
        shutil.rmtree(self.directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.directory.parent.rmdir()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def home() -> Path:
    """Return the directory of all clusters of this user."""
    if own := os.environ.get("LWS_STATE_HOME"):
        return Path(own)
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "lws"
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".local" / "state" / "lws"
    raise CommandError("no home directory is known: set LWS_STATE_HOME to a directory that you may write to")


def place(name: str) -> Place:
    """Return the place of the cluster of that name."""
    if not NAME.fullmatch(name):
        raise UsageFault(
            f"cluster name: Invalid value: {name!r}: use up to 40 lower-case letters, digits and '-', "
            "beginning and ending with a letter or digit"
        )
    return Place(name, home() / name)


def all_places() -> list[Place]:
    """Return the places of all clusters, running or not."""
    try:
        return [Place(path.name, path) for path in sorted(home().iterdir()) if path.is_dir()]
    except FileNotFoundError:
        return []


def ephemeral() -> Place:
    """Return a fresh place for one `lws run`, after removing those whose run was killed."""
    for stale in all_places():
        if stale.name.startswith(EPHEMERAL) and stale.pid() is None:
            stale.remove()
    return place(f"{EPHEMERAL}{os.getpid()}")
