"""Tests that the recordings on the front page match the current output."""

import os
import sys
from pathlib import Path

import pytest
from docs import record_rollout
from docs.record_run import COMMAND, TEXT, Line, load, shapes
from tests.e2e.harness import Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_run_prints_lines_like_the_recording(shell: Shell) -> None:
    result = shell.lws(*COMMAND.split()[1:])
    now = [Line(0.0, text) for text in (result.stdout + result.stderr).splitlines()]
    assert shapes(now) == shapes(load(TEXT.read_text())), "the front page shows something else: make recording"


def test_stuck_rollout_is_undone_like_the_recording(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    now = record_rollout.record({**os.environ, "PATH": path, "LWS_STATE_HOME": str(tmp_path)})
    kept = record_rollout.TEXT.read_text()
    assert record_rollout.shapes(now) == record_rollout.shapes(kept), (
        "the front page shows something else: make recording"
    )
    assert any("LWS-E071" in line for line in record_rollout.shapes(kept))
    assert kept in record_rollout.PAGE.read_text()
