"""Runs some of the tests with one other Kubernetes version, which changes on each day with commits.

    python -m tests.controlplane.rotation

The date of the last commit chooses the version, so that a run of a commit can be repeated. The part is what differs
between versions: rollouts. A version that is not built is named, and not built: that takes minutes.
"""

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Final

from testkit import repository
from tests.controlplane import build

ROOT: Final = repository.ROOT
ROTATING: Final = tuple(version for version in build.VERSIONS if version != build.DEFAULT)
FOLDER: Final = "packages/leaderworkerset/tests/integration/lws"
PART: Final = (f"{FOLDER}/test_rollout.py",)
OPTIONS: Final = ("--tier", "kubernetes", "-k", "not other_version")


def version_of(day: date) -> str:
    """Return the Kubernetes version for a day.

    >>> [version_of(date(2026, 11, day)) for day in (27, 28, 29, 30)]
    ['1.34', '1.35', '1.37', '1.34']
    """
    return ROTATING[day.toordinal() % len(ROTATING)]


def last_commit(root: Path = ROOT) -> date | None:
    """Return the date of the last commit, or None outside a repository."""
    git = ("git", "-C", str(root), "log", "-1", "--format=%cs")
    found = subprocess.run(git, capture_output=True, text=True, check=False)
    return date.fromisoformat(found.stdout.strip()) if found.returncode == 0 else None


def main() -> int:
    """Run the tests unless their version is not built. Return the exit code."""
    day = last_commit()
    if day is None:
        sys.stdout.write("rotation: this is no git repository, so there is no date of a commit: nothing runs\n")
        return 0
    version = version_of(day)
    reason = f"Kubernetes {build.VERSIONS[version]}, by the date of the last commit, {day}"
    if not build.is_built(version):
        sys.stdout.write(
            f"rotation: {reason}: not built, so it is not tested; python -m tests.controlplane.build {version}\n"
        )
        return 0
    sys.stdout.write(f"rotation: {reason}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", *OPTIONS, *PART, *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"KUBERNETES": version}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
