"""Logs of the clusters stay short: a failing test shows warnings, not every write."""

import pytest

from leaderworkerset.cli import logging


@pytest.fixture(autouse=True)
def _quiet_logs() -> None:
    logging.configure("error")
