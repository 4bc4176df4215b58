"""Reads the settings for moving groups from nodes under maintenance.

The configuration and an annotation contain them.

Input: the configuration and annotations. Output: whether the groups of a LeaderWorkerSet are moved, and admission
errors. A stored annotation with an invalid value is read as the default, so that one object does not block others.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kuberuntime.objects.field import FieldError, invalid
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

ON: Final = "on"
OFF: Final = "off"


class MaintenanceSettings(Struct, frozen=True):
    """The taint key that closes a node (can be empty), and whether LeaderWorkerSets are moved by default."""

    taint: str = ""
    moves_by_default: bool = False

    def moves_groups(self, annotations: Mapping[str, str]) -> bool:
        """Return whether the groups of a LeaderWorkerSet with these annotations are moved."""
        setting = annotations.get(labels.MOVE_OFF_CLOSED_NODES)
        return setting == ON if setting in (ON, OFF) else self.moves_by_default


def errors(lws: LeaderWorkerSet) -> list[FieldError]:
    """Return the error of an invalid annotation."""
    setting = lws.metadata.annotations.get(labels.MOVE_OFF_CLOSED_NODES)
    if setting in (None, ON, OFF):
        return []
    return [invalid(f"metadata.annotations[{labels.MOVE_OFF_CLOSED_NODES}]", setting, f"must be {ON} or {OFF}")]
