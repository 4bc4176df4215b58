"""Runs all commands on a local cluster with real processes."""

from pathlib import Path

import pytest
from tests.e2e.harness import LocalCluster, lws
from tests.verbs import script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_verbs_behave_as_documented(cluster: LocalCluster, tmp_path: Path) -> None:
    for step in script(tmp_path):
        result = cluster.shell.ended(f"--local={cluster.name}", *step.words)
        step.check(result.returncode, result.stdout + result.stderr)
    assert (tmp_path / "back.txt").read_text() == "sent\n"


def test_image_without_tar_is_named(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "sent.txt").write_text("sent\n")
    without_path = {"command": ["/bin/sleep", "600"], "env": [{"name": "PATH", "value": "/nowhere"}]}
    cluster.start(lws("bare", without_path))
    said = cluster.refused("cp", str(tmp_path / "sent.txt"), "bare/0/0:/tmp/got.txt")
    assert "does not have tar" in said
    cluster.lws("delete", "bare")
