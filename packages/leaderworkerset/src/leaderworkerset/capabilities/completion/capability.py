"""Completion and progress as a value of the table of capabilities."""

from typing import Final

from leaderworkerset.api import runsettings
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.completion import ending, finishing, hang
from leaderworkerset.core.extensions import GroupPlace, GroupStep

CAPABILITY: Final = Capability(
    name="completion",
    page="how-to/progress.md",
    settings=runsettings.ANNOTATIONS,
    wakes_groups=True,
    errors=(runsettings.errors,),
    excuses=(finishing.excuses,),
    fault_finders=(hang.find,),
    set_ends=(ending.expire,),
    group_steps=(GroupStep(GroupPlace.OVER, ending.keep_ended), GroupStep(GroupPlace.RUNNING, ending.finish)),
)
