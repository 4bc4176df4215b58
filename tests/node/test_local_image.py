"""Tests that the `lws` image with the embedded cluster runs groups as an unprivileged user."""

from pathlib import Path

import pytest
from tests.node import images, prerequisites, programs


def test_local_image_runs_an_example_without_privileges(tmp_path: Path) -> None:
    if reason := prerequisites.obstacle():
        pytest.skip(reason)
    prerequisites.install_packages(tmp_path, programs.say)
    ran = images.run_local(
        programs.say,
        "run",
        "-f",
        "/examples/allreduce/lws.yaml",
        "--image",
        "allreduce=/examples/allreduce",
        "--until",
        "done",
    )
    assert ran.count("all-reduce verified: 3 rounds over 4 ranks") == 8
