"""Whether groups are moved, and off which nodes (ADR 23)."""

from typing import Any

import pytest

from leaderworkerset.api import labels
from leaderworkerset.core.maintenance import movesettings
from leaderworkerset.core.maintenance.movesettings import MoveSettings

NAMED = MoveSettings(taint="example.com/maintenance")
PATCHING = {"key": "example.com/maintenance", "effect": "NoSchedule"}
BAD_DISK = {"key": "bad-disk", "effect": "NoExecute"}
DEDICATED = {"key": "dedicated", "effect": "NoSchedule"}
TOLERATES_ALL = {"tolerations": [{"operator": "Exists"}]}


@pytest.mark.parametrize(
    ("node", "leaves"),
    [
        ({}, False),
        ({"unschedulable": True}, True),
        ({"taints": [DEDICATED]}, False),
        ({"taints": [BAD_DISK]}, True),
        ({"taints": [PATCHING]}, True),
        ({"taints": [PATCHING | {"effect": "PreferNoSchedule"}]}, False),
    ],
)
def test_a_pod_leaves_a_node_under_maintenance_unless_it_tolerates_that(node: dict[str, Any], leaves: bool) -> None:
    """One that tolerates it might come back, and would be moved for ever."""
    assert movesettings.must_leave(NAMED, {"spec": node}, {"spec": {}}) == leaves
    assert not movesettings.must_leave(NAMED, {"spec": node}, {"spec": TOLERATES_ALL})


def test_another_taint_that_forbids_scheduling_is_no_maintenance() -> None:
    assert not movesettings.must_leave(MoveSettings(), {"spec": {"taints": [PATCHING]}}, {"spec": {}})


@pytest.mark.parametrize(("text", "is_on"), [(None, True), ("true", True), ("false", False), ("yes", True)])
def test_the_annotation_overrides_the_setting_of_the_manager(text: str | None, is_on: bool) -> None:
    annotations = {} if text is None else {labels.MOVE_GROUPS: text}
    assert movesettings.is_on(MoveSettings(moves=True), annotations) == is_on
    assert movesettings.is_on(MoveSettings(), annotations) == (text == "true")


def test_a_new_annotation_must_be_valid_and_a_stored_one_blocks_nothing() -> None:
    bad = {labels.MOVE_GROUPS: "yes"}
    (error,) = movesettings.errors(bad, {})
    assert labels.MOVE_GROUPS in str(error)
    assert "must be true or false" in str(error)
    assert not [*movesettings.errors(bad, bad)]
    assert not [*movesettings.errors({labels.MOVE_GROUPS: "true"}, {})]
    assert not [*movesettings.errors({}, {})]
