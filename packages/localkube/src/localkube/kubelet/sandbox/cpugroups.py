"""Limits the CPU time of containers with cgroups, if this process can create them.

A group of this process is created below its own cgroup (version 1), or below the nearest ancestor that gives the controller
`cpu` to its children (version 2). Existing groups and mounts are not changed. It has one group for each container with a
limit, and is removed at the end, or by the next cluster if this process was killed. Commands of `exec` are not counted.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kuberuntime import randomness
from localkube.kubelet.processes import processstats, processtree

CONTROLLER: Final = "cpu"
PREFIX: Final = "localkube-"
PERIOD: Final = 100_000
"""The period in microseconds in which a container can use its share, as on a node."""

LEAST: Final = 1_000
"""The minimum share that the kernel accepts, in microseconds."""

ROUNDS: Final = 10
"""The number of searches for container processes, because new children might not be in the cgroup yet."""


class Parent(NamedTuple):
    """An existing cgroup in which this process might be able to create a cgroup."""

    directory: Path
    version: int

    @property
    def is_usable(self) -> bool:
        """Return whether children have the controller, and whether this process can move processes into them."""
        if self.version == 1:
            return os.access(self.directory, os.W_OK)
        with suppress(OSError):
            controllers = (self.directory / "cgroup.subtree_control").read_text().split()
            return CONTROLLER in controllers and os.access(self.directory / "cgroup.procs", os.W_OK)
        return False


class CpuGroups:
    """The cgroups of one cluster. Methods can be called in any thread."""

    def __init__(self, parent: Parent) -> None:
        """Create the cgroup of this process. Raise OSError if the kernel rejects it."""
        self._version = parent.version
        self._top = parent.directory / f"{PREFIX}{os.getpid()}-{randomness.uid()}"
        self._lock = threading.Lock()
        _remove_stale_groups(parent.directory)
        try:
            self._top.mkdir()
            if self._version == 2:
                (self._top / "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
            self._set(self._container_group(0), 1)
        except OSError:
            self.close()
            raise

    def limit(self, pid: int, cores: float) -> None:
        """Limit a container to `cores`, or remove the limit if it is 0. Do nothing if the container has exited."""
        with self._lock, suppress(OSError):  # the cgroup around this process can have a lower limit
            for leaf in self._top.iterdir():
                _remove(leaf)
            leaf = self._container_group(pid)
            self._set(leaf, cores)
            self._join(leaf, pid)

    def close(self) -> None:
        """Remove all cgroups after their processes have exited."""
        with self._lock:
            _remove_all(self._top)

    def _container_group(self, pid: int) -> Path:
        leaf = self._top / str(pid)
        leaf.mkdir(exist_ok=True)
        return leaf

    def _set(self, leaf: Path, cores: float) -> None:
        share = max(LEAST, int(cores * PERIOD)) if cores else None
        if self._version == 2:
            (leaf / "cpu.max").write_text(f"{'max' if share is None else share} {PERIOD}")
        else:
            (leaf / "cpu.cfs_period_us").write_text(str(PERIOD))
            (leaf / "cpu.cfs_quota_us").write_text(str(-1 if share is None else share))

    def _join(self, leaf: Path, pid: int) -> None:
        """Move all processes of a container. The kernel adds their later children to the same cgroup."""
        moved: set[int] = set()
        for _ in range(ROUNDS):
            processes = processtree.read()
            new = {*(processstats.container_processes(pid, processes) if pid in processes else ())} - moved
            if not new:
                return
            for member in sorted(new):
                with suppress(ProcessLookupError):
                    (leaf / "cgroup.procs").write_text(str(member))
            moved |= new


def find_groups(proc: str = "/proc") -> CpuGroups | None:
    """Return cgroups in the nearest location where this process can create them, or None if there is none."""
    try:
        mounts, own = (Path(proc, "self", name).read_text() for name in ("mountinfo", "cgroup"))
    except OSError:
        return None
    for parent in parent_groups(mounts, own):
        with suppress(OSError):
            if parent.is_usable:
                return CpuGroups(parent)
    return None


def parent_groups(mounts: str, own: str) -> Iterator[Parent]:
    r"""Yield the cgroups around a process, nearest first, based on its mountinfo and its cgroup file.

    >>> mounts = "9 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup c rw,cpu\n8 1 0:2 / /u rw - cgroup2 c rw\n"
    >>> [f"{parent.directory} {parent.version}" for parent in parent_groups(mounts, "4:cpu:/a\n0::/b/c\n")]
    ['/sys/fs/cgroup/cpu/a 1', '/u/b/c 2', '/u/b 2', '/u 2']
    """
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in own.splitlines())}
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        root, point = fields.split()[3:5]
        form, _, options = kind.split(" ", 2)
        if form == "cgroup" and CONTROLLER in options.split(","):
            path = next((path for names, path in paths.items() if CONTROLLER in names.split(",")), None)
        else:
            path = paths.get("") if form == "cgroup2" else None
        if path is None or not Path(path).is_relative_to(root) or ".." in Path(path).parts:
            continue
        top = Path(point)
        nearest = top / Path(path).relative_to(root)
        yield Parent(nearest, 1 if form == "cgroup" else 2)
        if form == "cgroup2":
            yield from (Parent(above, 2) for above in nearest.parents if above.is_relative_to(top))


def _remove_stale_groups(directory: Path) -> None:
    """Remove the cgroups of killed clusters."""
    for group in directory.glob(f"{PREFIX}*"):
        pid, _, _ = group.name.removeprefix(PREFIX).partition("-")
        if pid.isdigit() and not Path("/proc", pid).exists():
            _remove_all(group)


def _remove_all(group: Path) -> None:
    with suppress(OSError):
        for leaf in group.iterdir():
            _remove(leaf)
    _remove(group)


def _remove(group: Path) -> None:
    """Remove an empty cgroup. A cgroup with processes remains, and its files are not removed."""
    with suppress(OSError):
        group.rmdir()
