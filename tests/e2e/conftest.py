"""Provides a shell for each test, and a shared cluster for tests that do not affect each other."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.harness import LocalCluster, Shell, clean_up, make_shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """The shell of a user who has never used `lws`. Running clusters are stopped after the test."""
    shell = make_shell(tmp_path)
    yield shell
    clean_up(shell)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster that `lws up` starts for all tests in a module. Each test uses separate names."""
    shell = make_shell(tmp_path_factory.mktemp("cluster"))
    shell.lws("up", "shared", "--detach", "--image", "allreduce=examples/allreduce")
    yield LocalCluster(shell, "shared")
    clean_up(shell)
    shell.assert_nothing_is_left()
