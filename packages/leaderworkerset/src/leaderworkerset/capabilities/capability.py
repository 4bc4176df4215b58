"""Defines a capability and its additions to the upstream contract.

In: the functions and settings of a folder. Out: a row of the table, and calls in the hooks of sets and groups
(`enabled.py`). Decisions are pure: controllers read the additional state that a capability
needs.
"""

from leaderworkerset.core.extensions import Extensions


class Capability(Extensions, frozen=True, kw_only=True):
    """A capability with its name, documentation page, annotations, and rows in the tables of several capabilities.

    If `wakes_groups` is set, a change of its settings triggers a decision about each group of the LeaderWorkerSet.
    `pod_marks` and `statefulset_marks` are annotations. `fields` are optional spec fields that its decisions about
    groups read. `pod_fields` and `statefulset_fields` are paths that only its decisions read, not the core. Caches keep
    these fields and the marks.
    """

    name: str
    page: str
    settings: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    pod_marks: tuple[str, ...] = ()
    statefulset_marks: tuple[str, ...] = ()
    wakes_groups: bool = False
    pod_fields: tuple[str, ...] = ()
    statefulset_fields: tuple[str, ...] = ()
