"""Tests that this manager creates the recorded objects of the recorded sets, on both clusters."""

import asyncio

import pytest
from tests.parity.conftest import Start
from tests.parity.normal import differences
from tests.parity.replay import load, replay


@pytest.mark.slow
def test_manager_leaves_the_same_objects_as_the_go_manager(start: Start) -> None:
    """60 LeaderWorkerSets are created and changed.

    Rules R-ARC-2, R-LSTS-1, R-LSTS-2, R-WSTS-2, R-WSTS-3, R-SVC-1 to R-SVC-3, R-REV-1, R-REV-2, R-REV-14, R-ENV-1,
    R-ADM-4 to R-ADM-15, R-TPU-1 to R-TPU-4, R-STAT-8, R-STAT-11, R-DEF-1 to R-DEF-4, R-VAL-15.
    """

    async def scenario() -> list[str]:
        async with start() as one, one.manager():
            return await replay(one.client, load())

    assert asyncio.run(scenario()) == []


def test_comparison_reports_a_difference() -> None:
    recorded = load()[1]["created"]
    assert differences(recorded, recorded) == []
    pod = next(obj for obj in recorded if obj["kind"] == "Pod")
    changed = [obj | {"labels": {}} if obj is pod else obj for obj in recorded]
    lines = differences(recorded, changed)
    assert len(lines) == len(pod["labels"])
    assert all(line.startswith(f"Pod {pod['name']}: labels.") for line in lines)
    assert differences(recorded, recorded[1:]) == [f"{recorded[0]['kind']} {recorded[0]['name']}: is missing"]
