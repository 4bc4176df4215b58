"""A capability as a value: its additions to upstream's contract.

In: the functions and settings of a folder. Out: a row of the table (`enabled.py`). An empty place costs nothing.
Decisions are pure: controllers read the facts that a capability needs beyond the facts of the core.
"""

from leaderworkerset.core.extensions import Extensions


class Capability(Extensions, frozen=True, kw_only=True):
    """A capability: its name, the page that explains it, the annotations it reads, and its additions at each place.

    With `wakes_groups` a change of its settings leads to a decision about each group of the LeaderWorkerSet. `pod_marks`
    and `statefulset_marks` are annotations, and `conditions` types of conditions, that its decisions read also without
    its settings (`relevance.py`). `fields` are optional fields of the spec that its decisions about groups read, as they
    read settings. `pod_fields` and `statefulset_fields` are paths that only its decisions read, not the
    core. Caches keep them, and the marks.
    """

    name: str
    page: str
    settings: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    pod_marks: tuple[str, ...] = ()
    statefulset_marks: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    wakes_groups: bool = False
    pod_fields: tuple[str, ...] = ()
    statefulset_fields: tuple[str, ...] = ()
