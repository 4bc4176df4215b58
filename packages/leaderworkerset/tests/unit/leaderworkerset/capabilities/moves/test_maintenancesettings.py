"""Tests the settings for moving groups from cordoned nodes (docs/adr/0023)."""

import pytest
from tests import builders

from leaderworkerset.api import labels
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings, errors


@pytest.mark.parametrize("by_default", [False, True])
def test_move_annotation_overrides_the_configuration(by_default: bool) -> None:
    settings = MaintenanceSettings(moves_by_default=by_default)

    assert settings.moves_groups({}) is by_default
    assert settings.moves_groups({labels.MOVE_OFF_CLOSED_NODES: "on"})
    assert not settings.moves_groups({labels.MOVE_OFF_CLOSED_NODES: "off"})
    assert settings.moves_groups({labels.MOVE_OFF_CLOSED_NODES: "perhaps"}) is by_default


def test_invalid_move_annotation_is_rejected() -> None:
    wrong = {labels.MOVE_OFF_CLOSED_NODES: "perhaps"}

    (error,) = errors(builders.annotated(wrong))

    assert "must be on or off" in str(error)
    assert errors(builders.annotated({labels.MOVE_OFF_CLOSED_NODES: "on"})) == []
    assert errors(builders.annotated({})) == []
