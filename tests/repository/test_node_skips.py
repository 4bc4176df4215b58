"""A machine that cannot run real nodes skips their tests with exit code 0 and one line."""

import os

import pytest
from tests.node import __main__ as node


def test_tests_of_nodes_are_skipped_without_root(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert node.main([]) == 0
    assert capsys.readouterr().err == "skipped: a node needs root with CAP_SYS_ADMIN\n"


def test_a_reason_of_several_lines_is_reported_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert node.skip("apt-get update failed:\nErr:1 a mirror\nE: Could not resolve it\n") == 0
    assert capsys.readouterr().err == "skipped: apt-get update failed: E: Could not resolve it\n"
