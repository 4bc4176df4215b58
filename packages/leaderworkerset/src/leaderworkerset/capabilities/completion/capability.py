"""The completion and progress row of the capability table."""

from typing import Final

from leaderworkerset.api import labels, runsettings
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.completion import finishing
from leaderworkerset.core.extensions import GroupPlace, GroupStep

CAPABILITY: Final = Capability(
    name="completion",
    page="how-to/progress.md",
    settings=runsettings.ANNOTATIONS,
    wakes_groups=True,
    pod_marks=(labels.GROUP_ENDED, labels.HANG),
    errors=(runsettings.errors,),
    excuses=(finishing.excuses,),
    fault_finders=(finishing.find_hang,),
    set_ends=(finishing.expire,),
    group_steps=(GroupStep(GroupPlace.OVER, finishing.keep_ended), GroupStep(GroupPlace.RUNNING, finishing.finish)),
)
