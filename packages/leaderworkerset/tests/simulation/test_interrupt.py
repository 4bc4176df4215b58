"""Tests Ctrl-C during a campaign in several processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LIMIT = 120.0


def test_interrupted_campaign_prints_its_summary() -> None:
    words = [sys.executable, "-m", "tests.simulation", "--seeds", "4000", "--processes", "2"]
    place = Path(__file__).parents[2]
    campaign = subprocess.Popen(
        words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    children = Path(f"/proc/{campaign.pid}/task/{campaign.pid}/children")
    end = time.monotonic() + LIMIT
    while len(children.read_text().split()) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(campaign.pid, signal.SIGINT)  # as a terminal sends it
    try:
        output, _ = campaign.communicate(timeout=LIMIT)
    finally:
        if campaign.poll() is None:
            os.killpg(campaign.pid, signal.SIGKILL)
    assert "Traceback" not in output
    assert output.startswith("interrupted\n")
    assert "violations: 0" in output
    assert campaign.returncode == 0
