"""Updates in place as a value of the table of capabilities."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.inplace import inplace, inplacesteps, updating
from leaderworkerset.core.extensions import GroupPlace, GroupStep

CAPABILITY: Final = Capability(
    name="update-in-place",
    page="how-to/update-in-place.md",
    settings=(labels.IN_PLACE,),
    errors=(inplace.errors,),
    extend=(updating.extend,),
    excuses=(updating.excuses,),
    find_route=inplace.route_of,
    set_steps=(inplace.decide,),
    group_steps=(GroupStep(GroupPlace.COMPLETE, inplacesteps.decide),),
)
