"""Rolls out the latest revision of one slice (R-DS-35 to R-DS-43, R-DS-62).

Input: the parts of the slice and the target of each role. Output: a `RolloutActions`: the LeaderWorkerSets to create without
groups, the sizes to record on old LeaderWorkerSets, and the counts to change. No state is kept in memory between two
passes, because the objects contain all state.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from leaderworkerset.api.disaggregatedset import Role
from leaderworkerset.core.disaggregatedset import childsets, planner, roletargets
from leaderworkerset.core.disaggregatedset.childsets import RolePart
from leaderworkerset.core.disaggregatedset.planner import PlannerStep, RoleState
from leaderworkerset.core.disaggregatedset.roletargets import Scalers


class Resize(Struct, frozen=True):
    """A LeaderWorkerSet and its new number of groups."""

    part: RolePart
    replicas: int


class RolloutActions(Struct, frozen=True, kw_only=True):
    """The parts of one rollout step in the order of execution."""

    is_start: bool = False
    records: tuple[RolePart, ...] = ()
    """The old LeaderWorkerSets whose current number of groups must be recorded."""
    creates: tuple[str, ...] = ()
    """The roles whose new LeaderWorkerSet must be created with zero groups."""
    scalings: tuple[Resize, ...] = field(default=())


def next_actions(
    roles: Sequence[Role], old: Sequence[RolePart], new: Mapping[str, RolePart], scalers: Scalers
) -> RolloutActions:
    """Return the next step, or an empty step if new groups are unready. `new` contains the parts by role."""
    missing = tuple(role.name for role in roles if role.name not in new)
    if not new:
        records = tuple(part for part in old if part.initial_replicas != part.replicas)
        return RolloutActions(is_start=True, records=records, creates=missing)
    if missing:  # an interrupted start, or a LeaderWorkerSet that was deleted manually
        return RolloutActions(creates=missing)
    if not all(new[role.name].is_stable for role in roles):
        return RolloutActions()
    names, state = planner_input(roles, old, new, scalers)
    step = planner.next_step(state)
    return RolloutActions() if step is None else RolloutActions(scalings=tuple(_apply(names, state, step, old, new)))


def planner_input(
    roles: Sequence[Role], old: Sequence[RolePart], new: Mapping[str, RolePart], scalers: Scalers
) -> tuple[list[str], tuple[RoleState, ...]]:
    """Return the input of the planner (R-DS-39 to R-DS-42).

    Roles of the spec are first, and removed roles are last.
    """
    known = {role.name: role for role in roles}
    names = [*known, *sorted({part.role for part in old} - known.keys())]
    return names, tuple(_role_state(name, known.get(name), old, new, scalers) for name in names)


def _role_state(
    name: str, role: Role | None, old: Sequence[RolePart], new: Mapping[str, RolePart], scalers: Scalers
) -> RoleState:
    initial = sum(part.baseline for part in old if part.role == name)
    there = new[name].replicas if role is not None and name in new else 0
    desired = 0 if role is None else roletargets.target_replicas(role, scalers, max(initial, there))
    limits = roletargets.role_budget(role, desired)
    kept = (
        max(desired, there) if role is not None and role.is_external else desired
    )  # External roles never shrink (R-DS-41)
    left = childsets.total_replicas(old, name)
    return RoleState(initial, left, there, kept, limits.surge, limits.unavailable)


def _apply(
    names: Sequence[str], state: planner.State, step: PlannerStep, old: Sequence[RolePart], new: Mapping[str, RolePart]
) -> list[Resize]:
    """Return scale-ups before scale-downs. If the step cannot drain groups, create the next batch instead."""
    drains = _scale_downs(names, state, step, old)
    raises = _scale_ups(names, step, new)
    if not drains and not raises:
        instead = planner.create_batch(state)
        raises = [] if instead is None else _scale_ups(names, instead, new)
    return [*raises, *drains]


def _scale_ups(names: Sequence[str], step: PlannerStep, new: Mapping[str, RolePart]) -> list[Resize]:
    planned = {name: count for name, count in zip(names, step.new, strict=True) if name in new}
    return [Resize(new[name], count) for name, count in planned.items() if count > new[name].replicas]


def _scale_downs(
    names: Sequence[str], state: planner.State, step: PlannerStep, old: Sequence[RolePart]
) -> list[Resize]:
    budget = {name: role.old - left for name, role, left in zip(names, state, step.old, strict=True)}
    spare = {
        name: max(0, role.old - max(0, role.min_groups - role.new))
        for name, role in zip(names, state, strict=True)
        if role.has_min_groups
    }
    revisions = childsets.group_by_revision(old)
    kept = drain(
        [
            {name: childsets.total_replicas(parts, name) for name in dict.fromkeys(part.role for part in parts)}
            for parts in revisions
        ],
        budget,
        spare,
    )
    return [
        Resize(part, keeps[part.role])
        for parts, keeps in zip(revisions, kept, strict=True)
        for part in parts
        if keeps[part.role] < part.replicas
    ]


Counts: TypeAlias = Mapping[str, int]
"""The number of groups by role. Roles that do not exist in a revision are absent."""


def drain(revisions: Sequence[Counts], budget: Counts, spare: Counts) -> list[dict[str, int]]:
    """Return the remaining groups of each old revision (latest first) after a step (R-DS-62, R-DS-63).

    `spare` is how many groups of a role may be removed. If a role is absent, all of them may be removed. The latest old
    revision, which is only partly rolled out, is drained before older revisions. A revision serves with all its roles
    or not at all. If one role would be drained to zero, the other roles are also drained to zero if their minimum
    permits it. Otherwise, the role keeps one group. (The Go controller always drains the other roles, and spends the
    budget again on older revisions: Q-4, Q-5.)

    >>> drain([{"prefill": 2, "decode": 2}, {"prefill": 2, "decode": 2}], {"prefill": 2, "decode": 2}, {})
    [{'prefill': 0, 'decode': 0}, {'prefill': 2, 'decode': 2}]
    """
    left, may_go = dict(budget), dict(spare)
    kept = []
    for counts in revisions:
        keeps = _remaining_groups(counts, left, may_go)
        for role, count in counts.items():
            drained = count - keeps[role]
            left[role] = left.get(role, 0) - drained
            if role in may_go:
                may_go[role] -= drained
        kept.append(keeps)
    return kept


def _remaining_groups(counts: Counts, budget: Counts, spare: Counts) -> dict[str, int]:
    keeps = {role: count - min(count, max(0, budget.get(role, 0))) for role, count in counts.items()}
    if not any(count > 0 and keeps[role] == 0 for role, count in counts.items()):
        return keeps
    if all(count <= spare.get(role, count) for role, count in counts.items()):
        return dict.fromkeys(counts, 0)
    return {role: max(keeps[role], min(1, count)) for role, count in counts.items()}
