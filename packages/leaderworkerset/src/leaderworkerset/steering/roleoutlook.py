"""The effects of applying a manifest to a DisaggregatedSet: changed fields, and the groups of each role step by step.

Pure.

In: the DisaggregatedSet before and after the change. Out: a `RolesForeseen`, its lines for users and its document for
programs. The steps are those of the planner if every group becomes ready at once. The status has the existing groups; a
role with a scaler keeps its groups.
"""

from collections.abc import Iterator

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import disaggregatedset
from leaderworkerset.api.disaggregatedset import DisaggregatedSet
from leaderworkerset.core.disaggregatedset import planner, rolehash, roletargets
from leaderworkerset.core.disaggregatedset.planner import PlannerStep, RoleState
from leaderworkerset.steering import fieldchanges
from leaderworkerset.steering.fieldchanges import FieldChange
from leaderworkerset.steering.foresight import WAVES_SHOWN
from leaderworkerset.views.document import VERSION
from leaderworkerset.views.wording import counted


class RolesForeseen(Struct, frozen=True, kw_only=True):
    """The effects of a change of one DisaggregatedSet; the counts are those of one slice."""

    name: str
    is_new: bool
    rolls: bool
    slices: int
    changes: tuple[FieldChange, ...]
    roles: tuple[str, ...]
    states: tuple[RoleState, ...]
    steps: tuple[PlannerStep, ...]


def foresee(before: JSONObject | None, after: JSONObject) -> RolesForeseen:
    """Return the effects; `before` is None if the set does not exist yet. Raise ValueError for values of wrong types."""
    new = disaggregatedset.decode(after)
    old = None if before is None else disaggregatedset.decode(before)
    revisions = [rolehash.revision_of(meta.spec(obj).get("roles") or []) for obj in (before or after, after)]
    rolls = revisions[0] != revisions[1]
    known = {role.name: role for role in new.roles}
    present = {} if old is None else _present(old)
    names = (*known, *sorted(present.keys() - known.keys()))
    states = tuple(_state(name, new, present.get(name, 0)) for name in names)
    return RolesForeseen(
        name=new.name,
        is_new=old is None,
        rolls=rolls,
        slices=new.slices,
        changes=() if before is None else tuple(fieldchanges.field_changes(before, after)),
        roles=names,
        states=states,
        steps=tuple(planner.simulate(states))[1:] if rolls else (),
    )


def lines(found: RolesForeseen) -> Iterator[str]:
    """Yield the effects as text for people."""
    yield f"{found.name}: {fieldchanges.verdict(found.changes, is_new=found.is_new)}"
    yield from fieldchanges.change_lines(found.changes)
    each = f" in each of {found.slices} slices" if found.slices > 1 else ""
    for name, state in zip(found.roles, found.states, strict=True):
        if found.is_new or found.rolls or state.initial != state.target:
            now = "" if found.is_new else f", now {state.initial}"
            yield f"  role {name}: {counted(state.target, 'group')} wanted{now}{each}"
    if not found.is_new:
        yield "a new revision: the groups of all roles would be replaced" if found.rolls else "no new revision"
    for number, step in enumerate(found.steps, start=1):
        if number < WAVES_SHOWN or number == len(found.steps):
            yield f"  step {number}: {_counts(found, step)}"
        elif number == WAVES_SHOWN:
            yield f"  … {counted(len(found.steps) - WAVES_SHOWN, 'more step')}"


def document(found: RolesForeseen) -> JSONObject:
    """Return the document with stable field names, as `-o json` prints it."""
    return {
        "apiVersion": VERSION,
        "kind": "RolloutPlan",
        "disaggregatedSet": found.name,
        "created": found.is_new,
        "newRevision": found.rolls,
        "slices": found.slices,
        "changes": [{"field": change.path, "before": change.before, "after": change.after} for change in found.changes],
        "roles": [
            {"name": name, "groups": state.initial, "wantedGroups": state.target}
            for name, state in zip(found.roles, found.states, strict=True)
        ],
        "steps": [
            {
                "oldGroups": dict(zip(found.roles, step.old, strict=True)),
                "newGroups": dict(zip(found.roles, step.new, strict=True)),
            }
            for step in found.steps
        ],
    }


def _present(old: DisaggregatedSet) -> dict[str, int]:
    """Return the groups of each role that a slice has."""
    status = {one.name: one.replicas for one in old.status.role_statuses or ()} if old.status else {}
    return {role.name: status[role.name] // old.slices if role.name in status else role.replicas for role in old.roles}


def _state(name: str, new: DisaggregatedSet, present: int) -> RoleState:
    role = next((one for one in new.roles if one.name == name), None)
    target = 0 if role is None else roletargets.target(role, {}, present)
    limits = roletargets.budget(role, target)
    return RoleState(present, present, 0, target, limits.surge, limits.unavailable)


def _counts(found: RolesForeseen, step: PlannerStep) -> str:
    rows = zip(found.roles, step.old, step.new, strict=True)
    return "; ".join(f"{name} {old} old, {new} new" for name, old, new in rows)
