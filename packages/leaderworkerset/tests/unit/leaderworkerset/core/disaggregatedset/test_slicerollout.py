"""Tests the conversion of a planner step to LeaderWorkerSet sizes."""

from kuberuntime.objects.meta import UID, ObjectKey
from leaderworkerset.api.disaggregatedset import Role, RoleRollingUpdate, RoleRolloutStrategy, RoleSpec
from leaderworkerset.core.disaggregatedset.childsets import RolePart
from leaderworkerset.core.disaggregatedset.slicerollout import Resize, RolloutActions, next_actions


def part(role: str, revision: str, replicas: int, *, initial: int | None = 3, day: int = 1) -> RolePart:
    return RolePart(
        key=ObjectKey("default", f"split-0-{revision}-{role}"),
        uid=UID(f"{revision}-{role}"),
        role=role,
        revision=revision,
        slice=0,
        is_legacy=False,
        is_deleting=False,
        created_at=f"2026-01-{day:02}T00:00:00Z",
        replicas=replicas,
        initial_replicas=initial,
        created_replicas=replicas,
        ready_replicas=replicas,
        updated_replicas=replicas,
    )


def role(name: str, replicas: int) -> Role:
    """Return a role that permits neither surge groups nor unavailable groups."""
    none = RoleRollingUpdate(max_surge=0, max_unavailable=0)
    strategy = RoleRolloutStrategy(rolling_update_configuration=none)
    return Role(name=name, spec=RoleSpec(replicas=replicas, rollout_strategy=strategy))


def test_next_batch_starts_when_no_revision_can_drain() -> None:
    """Each old revision retains its last groups, because no role may become empty. The rollout continues.

    Rule Q-4.
    """
    old = [part(name, revision, 1, day=day) for day, revision in ((1, "a"), (2, "b")) for name in ("prefill", "decode")]
    new = {
        "prefill": part("prefill", "c", 1, initial=None, day=3),
        "decode": part("decode", "c", 0, initial=None, day=3),
    }
    assert next_actions([role("prefill", 1), role("decode", 2)], old, new, {}) == RolloutActions(
        scalings=(Resize(new["decode"], 1),)
    )
