"""The capabilities of this product, in the order in which their steps are called: a new one is a row here.

Their order within one place matters as little as possible; `tests/property/test_capabilities.py` compares each pair.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from leaderworkerset.capabilities.capability import Capability
from leaderworkerset.capabilities.completion.capability import CAPABILITY as COMPLETION
from leaderworkerset.capabilities.disruption.capability import CAPABILITY as DISRUPTION
from leaderworkerset.capabilities.history.capability import CAPABILITY as HISTORY
from leaderworkerset.capabilities.inplace.capability import CAPABILITY as IN_PLACE
from leaderworkerset.capabilities.lostnodes.capability import CAPABILITY as LOST_NODES
from leaderworkerset.capabilities.moves.capability import CAPABILITY as MOVES
from leaderworkerset.capabilities.places.capability import CAPABILITY as PLACES
from leaderworkerset.capabilities.restartinplace.capability import CAPABILITY as RESTART_IN_PLACE
from leaderworkerset.capabilities.termination.capability import CAPABILITY as TERMINATION
from leaderworkerset.core.extensions import Extensions
from leaderworkerset.core.policies.placement import NO_PLACEMENT

T = TypeVar("T")

ENABLED: Final[tuple[Capability, ...]] = (
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


def combine(capabilities: Iterable[Capability]) -> Extensions:
    """Return what capabilities add together; raise ValueError where two of them claim a place for one."""
    rows = tuple(capabilities)
    return Extensions(
        errors=_present(one.errors for one in rows),
        warnings=_present(one.warnings for one in rows),
        nodes=_present(one.nodes for one in rows),
        policies=_present(one.policy for one in rows),
        placement=_only("place groups", {one.name: one.placement for one in rows}) or NO_PLACEMENT,
        extend=_present(one.extend for one in rows),
        excuses=_present(one.excuse for one in rows),
        fault_finders=_present(one.find_fault for one in rows),
        find_route=_only("find a route", {one.name: one.find_route for one in rows}),
        retire=_only("retire revisions", {one.name: one.retire for one in rows}),
        set_ends=_present(one.set_end for one in rows),
        set_folds=_present(one.set_fold for one in rows),
        set_steps=_present(one.set_step for one in rows),
        group_steps=tuple(step for one in rows for step in one.group_steps),
    )


def _only(what: str, parts: Mapping[str, T | None]) -> T | None:
    found = {name: part for name, part in parts.items() if part is not None}
    if len(found) > 1:
        raise ValueError(f"only one capability may {what}: {' and '.join(found)} do")
    return next(iter(found.values()), None)


def _present(parts: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(part for part in parts if part is not None)


EXTENSIONS: Final = combine(ENABLED)
"""All capabilities together."""

WAKING_GROUPS: Final = tuple(name for one in ENABLED if one.wakes_groups for name in one.settings)
"""The annotations of a LeaderWorkerSet whose change concerns each of its groups."""
