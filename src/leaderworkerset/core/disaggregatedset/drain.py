"""Which old LeaderWorkerSets are scaled down when a step drains old groups (R-DS-62, R-DS-63).

In: the old revisions, newest first, each with its groups by role; how many groups of each role the step drains, and how
many may be removed at most. Out: the groups that each revision keeps. The newest old revision, which is only partly
rolled out, is drained before the older ones. A revision serves with all its roles or not at all. So a role that would
be drained to zero drains the others to zero, too, where their floor allows that; otherwise it keeps one group. (The Go
controller drains the others in any case, and spends the budget again on older revisions: Q-4, Q-5.)
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Counts: TypeAlias = Mapping[str, int]
"""Groups by role; a role that a revision does not have is absent."""


def drain(revisions: Sequence[Counts], budget: Counts, spare: Counts) -> list[dict[str, int]]:
    """Return what each revision keeps; `spare` is how many groups of a role may be removed, absent: all of them.

    >>> drain([{"prefill": 2, "decode": 2}, {"prefill": 2, "decode": 2}], {"prefill": 2, "decode": 2}, {})
    [{'prefill': 0, 'decode': 0}, {'prefill': 2, 'decode': 2}]
    """
    left, may_go = dict(budget), dict(spare)
    kept = []
    for counts in revisions:
        keeps = _keeps(counts, left, may_go)
        for role, count in counts.items():
            drained = count - keeps[role]
            left[role] = left.get(role, 0) - drained
            if role in may_go:
                may_go[role] -= drained
        kept.append(keeps)
    return kept


def _keeps(counts: Counts, budget: Counts, spare: Counts) -> dict[str, int]:
    keeps = {role: count - min(count, max(0, budget.get(role, 0))) for role, count in counts.items()}
    if not any(count > 0 and keeps[role] == 0 for role, count in counts.items()):
        return keeps
    if all(count <= spare.get(role, count) for role, count in counts.items()):
        return dict.fromkeys(counts, 0)
    return {role: max(keeps[role], min(1, count)) for role, count in counts.items()}
