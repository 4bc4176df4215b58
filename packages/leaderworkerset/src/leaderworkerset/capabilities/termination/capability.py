"""The termination row of the capability table."""

from typing import Final

from leaderworkerset.api import labels
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.termination import termination
from leaderworkerset.core.extensions import GroupPlace, GroupStep

CAPABILITY: Final = Capability(
    name="termination",
    page="how-to/places-and-ends.md",
    settings=(labels.POD_TERMINATION_POLICY,),
    fields=(termination.FIELD,),
    wakes_groups=True,
    statefulset_marks=(labels.POD_TERMINATION_POLICY,),
    errors=(termination.errors,),
    group_steps=(
        GroupStep(GroupPlace.WITHOUT_SET, termination.end_workers),
        GroupStep(GroupPlace.ENDING, termination.end_workers),
    ),
)
