"""Provides a pytest plugin that selects the number of test processes, and which tests share a process."""

import pytest
from testkit import repository, suite


def test_more_processes_run_tests_than_there_are_cores(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-n auto` uses the process count of this plugin instead of the count of pytest-xdist."""
    monkeypatch.setattr(pytestconfig.option, "numprocesses", "auto")
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == suite.AT_ONCE


def test_tests_of_a_shared_cluster_stay_together() -> None:
    for folder in suite.SHARED:
        files = (repository.ROOT / folder).rglob("test_*.py")
        groups = {suite.group_of(f"{path.relative_to(repository.ROOT).as_posix()}::test_it") for path in files}
        assert folder in groups <= {*suite.SHARED}


def test_make_check_runs_the_tests_that_make_test_omits() -> None:
    assert f"pytest -q {' '.join(suite.CHECKED)}\n" in (repository.ROOT / "Makefile").read_text()


def test_tests_of_pages_stay_together() -> None:
    assert {suite.group_of(f"{page}::test_it") for page in suite.PAGES} == {"pages"}
    assert [page for page in suite.PAGES if not (repository.ROOT / page).is_file()] == []
