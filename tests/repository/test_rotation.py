"""Tests that some of the tests run with a different Kubernetes version on each day with commits."""

import os
import subprocess
from datetime import date, timedelta
from pathlib import Path

from tests.controlplane import build, rotation

DAY = date(2026, 11, 28)


def test_consecutive_days_cover_all_other_versions() -> None:
    days = [rotation.version_of(DAY + timedelta(days=more)) for more in range(len(build.VERSIONS) - 1)]
    assert sorted([*days, build.DEFAULT]) == [*build.VERSIONS]


def test_day_is_that_of_the_last_commit(tmp_path: Path) -> None:
    assert rotation.last_commit(tmp_path) is None
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q"), (*identity, "commit", "-q", "--allow-empty", "-m", "One", f"--date={DAY}T12:00")):
        environment = os.environ | {"GIT_COMMITTER_DATE": f"{DAY}T12:00:00"}
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True, env=environment)
    assert rotation.last_commit(tmp_path) == DAY


def test_every_file_of_the_rotation_exists() -> None:
    assert [name for name in rotation.PART if not (rotation.ROOT / name).is_file()] == []
