"""Tests that a machine without support for real nodes skips their tests with exit code 0 and one line."""

import os
from pathlib import Path

import pytest
from tests.controlplane.build import BuildError
from tests.node import __main__ as node
from tests.node import prerequisites


def test_tests_of_nodes_are_skipped_without_root(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert node.main([]) == 0
    assert capsys.readouterr().err == "skipped: a node needs root with CAP_SYS_ADMIN\n"


def test_failure_of_apt_get_is_not_an_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A locked dpkg database once resulted in exit code 0."""
    program = tmp_path / "apt-get"
    program.write_text('#!/bin/sh\necho "E: Could not get lock /var/lib/dpkg/lock-frontend ($*)" >&2\nexit 100\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prerequisites, "SBIN", str(tmp_path))
    with pytest.raises(BuildError, match=r"dpkg/lock-frontend \(--option=DPkg::Lock::Timeout=600 update") as failure:
        prerequisites.install_packages(tmp_path, lambda _: None)
    assert not isinstance(failure.value, prerequisites.AbsentError)


def test_skipped_tests_do_not_count_as_run(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite tests="5" skipped="2"/></testsuites>')
    assert node.tests_run(report) == 3


def test_a_reason_of_several_lines_is_reported_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert node.skip("apt-get update failed:\nErr:1 a mirror\nE: Could not resolve it\n") == 0
    assert capsys.readouterr().err == "skipped: apt-get update failed: E: Could not resolve it\n"
