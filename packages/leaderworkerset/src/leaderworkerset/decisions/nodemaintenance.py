"""Exports group moves during node maintenance, and disruption budgets."""

from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.disruption.disruptionsettings import limit as disruption_limit
from leaderworkerset.capabilities.disruption.groupbudget import OPEN as OPEN_BUDGET
from leaderworkerset.capabilities.moves.closednodes import OF_KUBERNETES as TAINTS_OF_KUBERNETES
from leaderworkerset.capabilities.moves.closednodes import must_be_moved
from leaderworkerset.capabilities.moves.maintenancesettings import OFF as MOVES_OFF
from leaderworkerset.capabilities.moves.maintenancesettings import ON as MOVES_ON
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.capabilities.moves.moves import choose_groups as choose_moves
