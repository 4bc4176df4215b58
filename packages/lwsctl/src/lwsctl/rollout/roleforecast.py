"""Predicts the changed fields and the steps of each role if a manifest is applied to a DisaggregatedSet.

Pure.

The input is the DisaggregatedSet before and after the change. The output is a `RoleForecast`, as text and as a
machine-readable document. The planner calculates the steps, assuming that all groups become ready immediately. The
number of existing groups is read from the status. The groups of a role with a scaler do not change.
"""

from collections.abc import Iterator

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts import fieldchanges
from kuberuntime.texts.fieldchanges import FieldChange
from leaderworkerset.api import disaggregatedset
from leaderworkerset.api.disaggregatedset import DisaggregatedSet
from leaderworkerset.decisions.rolesteps import (
    PlannerStep,
    RoleState,
    role_budget,
    role_revision,
    role_target,
    simulate_rollout,
)
from lwsctl.rollout.applyforecast import WAVES_SHOWN
from lwsctl.views.document import VERSION
from lwsctl.views.wording import format_count


class RoleForecast(Struct, frozen=True, kw_only=True):
    """The effects of a change to one DisaggregatedSet. The numbers apply to one slice."""

    name: str
    is_new: bool
    has_rollout: bool
    slices: int
    changes: tuple[FieldChange, ...]
    roles: tuple[str, ...]
    states: tuple[RoleState, ...]
    steps: tuple[PlannerStep, ...]


def forecast_roles(before: JSONObject | None, after: JSONObject) -> RoleForecast:
    """Return the effects. If the set does not exist, `before` is None. Raise ValueError for invalid values."""
    new = disaggregatedset.decode(after)
    old = None if before is None else disaggregatedset.decode(before)
    revisions = [role_revision(meta.spec(obj).get("roles") or []) for obj in (before or after, after)]
    rolls = revisions[0] != revisions[1]
    roles = {role.name: role for role in new.roles}
    present = {} if old is None else _existing_groups(old)
    names = (*roles, *sorted(present.keys() - roles.keys()))
    states = tuple(_state(name, new, present.get(name, 0)) for name in names)
    return RoleForecast(
        name=new.name,
        is_new=old is None,
        has_rollout=rolls,
        slices=new.slices,
        changes=() if before is None else tuple(fieldchanges.field_changes(before, after)),
        roles=names,
        states=states,
        steps=tuple(simulate_rollout(states))[1:] if rolls else (),
    )


def lines(plan: RoleForecast) -> Iterator[str]:
    """Yield the effects as text."""
    yield f"{plan.name}: {fieldchanges.summary(plan.changes, is_new=plan.is_new)}"
    yield from fieldchanges.change_lines(plan.changes)
    each = f" in each of {plan.slices} slices" if plan.slices > 1 else ""
    for name, state in zip(plan.roles, plan.states, strict=True):
        if plan.is_new or plan.has_rollout or state.initial != state.target:
            now = "" if plan.is_new else f", now {state.initial}"
            yield f"  role {name}: {format_count(state.target, 'group')} desired{now}{each}"
    if not plan.is_new:
        yield "a new revision: the groups of all roles would be replaced" if plan.has_rollout else "no new revision"
    for number, step in enumerate(plan.steps, start=1):
        if number < WAVES_SHOWN or number == len(plan.steps):
            yield f"  step {number}: {_counts_text(plan, step)}"
        elif number == WAVES_SHOWN:
            yield f"  … {format_count(len(plan.steps) - WAVES_SHOWN, 'more step')}"


def document(plan: RoleForecast) -> JSONObject:
    """Return the effects with stable field names, as `-o json` prints them."""
    return {
        "apiVersion": VERSION,
        "kind": "RolloutPlan",
        "disaggregatedSet": plan.name,
        "created": plan.is_new,
        "newRevision": plan.has_rollout,
        "slices": plan.slices,
        "changes": [{"field": change.path, "before": change.before, "after": change.after} for change in plan.changes],
        "roles": [
            {"name": name, "groups": state.initial, "wantedGroups": state.target}
            for name, state in zip(plan.roles, plan.states, strict=True)
        ],
        "steps": [
            {
                "oldGroups": dict(zip(plan.roles, step.old, strict=True)),
                "newGroups": dict(zip(plan.roles, step.new, strict=True)),
            }
            for step in plan.steps
        ],
    }


def _existing_groups(old: DisaggregatedSet) -> dict[str, int]:
    """Return the number of existing groups of each role in one slice."""
    status = {role.name: role.replicas for role in old.status.role_statuses or ()} if old.status else {}
    return {role.name: status[role.name] // old.slices if role.name in status else role.replicas for role in old.roles}


def _state(name: str, new: DisaggregatedSet, present: int) -> RoleState:
    role = next((role for role in new.roles if role.name == name), None)
    target = 0 if role is None else role_target(role, {}, present)
    limits = role_budget(role, target)
    return RoleState(present, present, 0, target, limits.surge, limits.unavailable)


def _counts_text(plan: RoleForecast, step: PlannerStep) -> str:
    rows = zip(plan.roles, step.old, step.new, strict=True)
    return "; ".join(f"{name} {old} old, {new} new" for name, old, new in rows)
