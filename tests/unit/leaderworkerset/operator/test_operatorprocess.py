"""The parts of the operator's process that need no cluster."""

import asyncio
from pathlib import Path

import pytest
from tests.simulation.virtualtime import run

from leaderworkerset.operator import operatorprocess
from leaderworkerset.operator.openshift import election_times


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, (137.0, 107.0, 26.0)),
        ({"controlPlaneTopology": "HighlyAvailable"}, (137.0, 107.0, 26.0)),
        ({"controlPlaneTopology": "SingleReplica"}, (270.0, 240.0, 60.0)),
    ],
)
def test_a_single_control_plane_node_gets_longer_leases(
    status: dict[str, str], expected: tuple[float, float, float]
) -> None:
    """R-OP-12."""
    assert election_times({"status": status}) == expected


def test_it_ends_when_a_file_changes(tmp_path: Path) -> None:
    """R-OP-9: `--terminate-on-files`, also a file that appears."""
    file = tmp_path / "config"

    async def scenario() -> None:
        stopped = asyncio.Event()
        async with operatorprocess.ending_with([str(file)], stopped):
            await asyncio.sleep(operatorprocess.COMPARE_SECONDS * 3)
            assert not stopped.is_set()
            file.write_text("changed")
            await asyncio.wait_for(stopped.wait(), operatorprocess.COMPARE_SECONDS * 2)

    run(scenario())
