"""The lost pod row of the capability table."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.lostnodes import forcedeletion
from leaderworkerset.core.extensions import GroupPlace, GroupStep

CAPABILITY: Final = Capability(
    name=names.LOST_NODES,
    page="how-to/restarts.md",
    settings=(labels.RELEASE_LOST_PODS_AFTER,),
    wakes_groups=True,
    errors=(forcedeletion.errors,),
    nodes=(forcedeletion.wants_nodes,),
    group_steps=(GroupStep(GroupPlace.FIRST, forcedeletion.decide),),
)
