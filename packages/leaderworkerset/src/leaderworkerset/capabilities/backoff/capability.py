"""The back-off row of the capability table."""

from typing import Final

from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.backoff import backoffsettings
from leaderworkerset.capabilities.capability import Capability

CAPABILITY: Final = Capability(
    name=names.BACKOFF,
    page="how-to/restarts.md",
    settings=backoffsettings.ANNOTATIONS,
    wakes_groups=True,
    errors=(backoffsettings.errors,),
    warnings=(backoffsettings.warnings,),
    restarts=backoffsettings.of_group,
)
