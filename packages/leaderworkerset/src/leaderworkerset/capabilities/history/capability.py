"""The revision history row of the capability table."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.history import revisionhistory

CAPABILITY: Final = Capability(
    name="history",
    page="how-to/roll-out-and-back.md",
    settings=(labels.REVISION_HISTORY_LIMIT,),
    warnings=(revisionhistory.warnings,),
    retire=revisionhistory.retire,
)
