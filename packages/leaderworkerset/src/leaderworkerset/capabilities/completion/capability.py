"""The completion and progress row of the capability table."""

from typing import Final

from leaderworkerset.api import labels, runsettings
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.completion import runtocompletion
from leaderworkerset.core.extensions import GroupPlace, GroupStep

CAPABILITY: Final = Capability(
    name="completion",
    page="how-to/progress.md",
    settings=runsettings.ANNOTATIONS,
    wakes_groups=True,
    pod_marks=(labels.GROUP_ENDED, labels.HANG),
    errors=(runsettings.errors,),
    excuses=(runtocompletion.excuses,),
    fault_finders=(runtocompletion.find_hang,),
    set_ends=(runtocompletion.expire,),
    group_steps=(
        GroupStep(GroupPlace.OVER, runtocompletion.keep_ended),
        GroupStep(GroupPlace.RUNNING, runtocompletion.finish),
    ),
)
