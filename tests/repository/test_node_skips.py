"""Tests that a machine without support for real nodes skips their tests with exit code 0 and one line."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.controlplane.build import BuildError
from tests.node import __main__ as node
from tests.node import images, prerequisites


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


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_first_package_of_an_empty_cache_is_unpacked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def download(*_words: str, directory: Path) -> None:
        files = directory / "busybox" / "bin"
        files.mkdir(parents=True)
        (files / "busybox").touch()
        control = files.parent / "DEBIAN" / "control"
        control.parent.mkdir()
        control.write_text(
            "Package: busybox-static\nVersion: 1\nArchitecture: all\nMaintainer: tests\nDescription: tests\n"
        )
        subprocess.run(
            ["dpkg-deb", "--build", "busybox", "busybox.deb"], cwd=directory, check=True, capture_output=True
        )

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "absent"))
    monkeypatch.setattr(prerequisites, "apt", download)
    unpacked = prerequisites.unpacked("busybox-static", images.cache())
    assert (unpacked / "bin" / "busybox").is_file()
