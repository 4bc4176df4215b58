"""A capability as a value: all that it adds to upstream's contract.

In: the functions and settings of a folder. Out: what the table (`enabled.py`) is made of. Each place that stays empty
costs nothing. Decisions are pure: controllers read what a capability needs beyond the core's facts.
"""

from leaderworkerset.core.extensions import Extensions


class Capability(Extensions, frozen=True, kw_only=True):
    """A capability: its name, the page that explains it, the annotations it reads, and what it adds at each place.

    With `wakes_groups` a change of its settings leads to a decision about each group of the LeaderWorkerSet.
    `pod_fields` and `statefulset_fields` are paths that its decisions read and the core does not: caches keep them.
    """

    name: str
    page: str
    settings: tuple[str, ...] = ()
    wakes_groups: bool = False
    pod_fields: tuple[str, ...] = ()
    statefulset_fields: tuple[str, ...] = ()
