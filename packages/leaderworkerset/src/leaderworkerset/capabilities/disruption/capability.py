"""The disruption budget row of the capability table. `controllers/disruption.py` updates the budgets."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.disruption import disruptionsettings

CAPABILITY: Final = Capability(
    name=names.DISRUPTION,
    page="how-to/drain.md",
    settings=(labels.DISRUPTION_BUDGET, labels.DO_NOT_DISRUPT),
    errors=(disruptionsettings.errors,),
    warnings=(disruptionsettings.warnings,),
)
