"""A capability as a value: all that it adds to upstream's contract.

In: the functions and settings of a folder. Out: what the table (`enabled.py`) is made of. Each attribute that stays empty
costs nothing. Decisions are pure: what a capability observes beyond the core is declared here, and read by controllers.
"""

from collections.abc import Callable

from msgspec import Struct

from leaderworkerset.core.extensions import Errors, FindRoute, GroupStep, Retire, SetEnd, SetFold, SetStep, Warnings
from leaderworkerset.core.leaderworkerset.groupfacts import Extend
from leaderworkerset.core.policies.failures import Excuse, FindFault
from leaderworkerset.core.policies.placement import NodePlacement
from leaderworkerset.core.policies.policy import LiveGroup, Policy


class Capability(Struct, frozen=True, kw_only=True):
    """A capability: its name, the page that explains it, the annotations it reads, and what it adds at each place.

    With `wakes_groups` a change of its settings leads to a decision about each group of the LeaderWorkerSet. `nodes` returns
    the names of the nodes that the decision about a group depends on; they are read for it.
    """

    name: str
    page: str
    settings: tuple[str, ...] = ()
    wakes_groups: bool = False
    errors: Errors | None = None
    warnings: Warnings | None = None
    nodes: Callable[[LiveGroup], set[str]] | None = None
    policy: Policy | None = None
    placement: NodePlacement | None = None
    extend: Extend | None = None
    find_route: FindRoute | None = None
    excuse: Excuse | None = None
    find_fault: FindFault | None = None
    retire: Retire | None = None
    set_end: SetEnd | None = None
    set_fold: SetFold | None = None
    set_step: SetStep | None = None
    group_steps: tuple[GroupStep, ...] = ()
