"""Tests that a paused leader does not write after another replica leads (R-MGR-3, R-ARC-1)."""

from typing import Any, Final

import pytest
from tests.kubernetes.manager import fencing
from tests.kubernetes.manager.world import InstalledCluster

pytestmark = pytest.mark.slow

ROUNDS: Final = 2
"""`python -m bench.manager fencing` performs two hundred pauses."""


@pytest.mark.parametrize("client", [{"qps": 5, "burst": 5}, {}], ids=["limited", "usual"])
async def test_paused_leader_writes_nothing_late(world: InstalledCluster, client: dict[str, Any]) -> None:
    counts = await fencing.rounds(world, count=ROUNDS, client=client)
    assert counts.late == ()
    assert counts.writes >= ROUNDS
