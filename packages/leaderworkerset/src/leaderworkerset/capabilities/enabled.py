"""The capabilities of this project, in the order in which they are called. To add a capability, add a row.

The order within one place matters as little as possible; `tests/property/test_capabilities.py` compares each pair.
"""

from typing import Final

from leaderworkerset.capabilities.backoff.capability import CAPABILITY as BACKOFF
from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.completion.capability import CAPABILITY as COMPLETION
from leaderworkerset.capabilities.disruption.capability import CAPABILITY as DISRUPTION
from leaderworkerset.capabilities.history.capability import CAPABILITY as HISTORY
from leaderworkerset.capabilities.inplace.capability import CAPABILITY as IN_PLACE
from leaderworkerset.capabilities.lostnodes.capability import CAPABILITY as LOST_NODES
from leaderworkerset.capabilities.moves.capability import CAPABILITY as MOVES
from leaderworkerset.capabilities.preferrednodes.capability import CAPABILITY as PLACES
from leaderworkerset.capabilities.restartinplace.capability import CAPABILITY as RESTART_IN_PLACE
from leaderworkerset.capabilities.termination.capability import CAPABILITY as TERMINATION
from leaderworkerset.core.extensions import together

ENABLED: Final[tuple[Capability, ...]] = (
    BACKOFF,
    LOST_NODES,
    COMPLETION,
    TERMINATION,
    IN_PLACE,
    RESTART_IN_PLACE,
    PLACES,
    DISRUPTION,
    MOVES,
    HISTORY,
)


EXTENSIONS: Final = together({capability.name: capability for capability in ENABLED})
"""All capabilities combined."""

WAKING_GROUPS: Final = tuple(name for capability in ENABLED if capability.wakes_groups for name in capability.settings)
"""The LeaderWorkerSet annotations that trigger a reconciliation of each group if they change."""

WAKING_FIELDS: Final = tuple(name for capability in ENABLED if capability.wakes_groups for name in capability.fields)
"""The spec fields that trigger a reconciliation of each group if they change."""
