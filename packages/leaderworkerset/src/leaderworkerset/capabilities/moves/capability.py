"""The maintenance row of the capability table."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.moves import maintenancesettings, moves

CAPABILITY: Final = Capability(
    name=names.MOVES,
    page="how-to/drain.md",
    settings=(labels.MOVE_OFF_CLOSED_NODES,),
    conditions=(MOVE_IN_PROGRESS.type,),
    errors=(maintenancesettings.errors,),
    set_folds=(moves.depart,),
    set_steps=(moves.decide,),
)
