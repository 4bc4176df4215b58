"""The in-place restart row of the capability table."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.restartinplace import allcontainers

CAPABILITY: Final = Capability(
    name="restart-in-place",
    page="how-to/in-place.md",
    settings=(labels.IN_PLACE_RESTARTS,),
    wakes_groups=True,
    pod_marks=(labels.RESTARTED_IN_PLACE,),
    errors=(allcontainers.errors,),
    excuses=(allcontainers.excuses,),
    fault_finders=(allcontainers.find,),
)
