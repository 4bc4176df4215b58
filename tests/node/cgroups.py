"""Manages the cgroups of a run: one directory in each hierarchy, with a directory for each node."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.node.prerequisites import CGROUPS, CONTROLLERS, is_unified


def make(name: str, nodes: Sequence[str]) -> None:
    """Create the directory of a run and the directories of its nodes."""
    for hierarchy in hierarchies():
        for folder in (hierarchy / name, *(hierarchy / name / node for node in nodes)):
            folder.mkdir()
            _fill(folder)


def remove(name: str) -> None:
    """Remove the cgroups of a run after its processes have exited."""
    for hierarchy in hierarchies():
        for folder in sorted((hierarchy / name).rglob("*/"), reverse=True):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()
        with contextlib.suppress(FileNotFoundError):
            (hierarchy / name).rmdir()


def hierarchies() -> Iterator[Path]:
    """Yield the directories on which cgroups are mounted."""
    if is_unified():
        yield CGROUPS
    else:
        yield from (path.parent for path in sorted(CGROUPS.glob("*/cgroup.procs")))


def _fill(folder: Path) -> None:
    """Enable CPU and memory for a new directory. In version 2, enable all controllers for its children."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not is_unified() and (folder / name).exists():
            (folder / name).write_text((folder.parent / name).read_text())
    if is_unified():
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
