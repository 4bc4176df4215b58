"""Implements the rollout state machine for the leader StatefulSet and its groups (contract section 5).

Input: the LeaderWorkerSet, its leader StatefulSet, the index of its groups and their desired revision. Output: a
`Rollout`: partition and replicas to write to the StatefulSet, and the leaders to delete.

The StatefulSet controller replaces the leaders that a lower partition releases. Surge replicas replace the capacity
of updated groups. `ROLLOUT` lists the states and their steps. The first applicable row is used.

```
spec edited ─► NEW_REVISION ─► ROLLING ⟲ ─► AT_REST ─► older revisions are retired once no pods of them can be created
               holds all back   lowers the partition as the budget allows, gives      (`may_create_older`)
                                surge groups back; else deletes `leaders_to_delete`
replicas edited ─► SCALING_UP, REPLICAS_EDITED ─► ROLLING
```

Letters as in the contract: R desired replicas, U groups that may be unavailable, G surge groups, B = R + G the burst,
P the user's partition; S replicas and p partition of the StatefulSet, u desired groups not both ready and updated.
States are sets of indexes, a bit for each existing group (`GroupIndex`). R and S may be as large as the API allows (2³¹ - 1).

A group is *released* when the partition falls to its index or below: it gets the new template. There are eight intended
differences from the Go controller (a ninth is in `budget`; reasons: docs/adr/0010, docs/adr/0030):

- Groups whose leader has scheduling gates are released first, if no other group has a higher index (R-KQ-61).
- Broken groups of an older revision are replaced first, whatever their index (`outdatedleaders.py`, docs/adr/0030).
- A ready surge group stays while it is needed for `R - U` available groups. The Go controller counts all surge groups.
- A leader that is being deleted is unavailable. To the Go controller it is ready until its pod has ended.
- A new template also holds back surge groups. The Go controller updates all of them at once.
- Missing groups count at any index, not only below the base.
- The next group waits until the StatefulSet controller has observed the last step (`hold_step`).
- The size with which a group was created counts, not the size in the spec.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset import budget, groupindex, outdatedleaders
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, RolloutRoute, States, indexes_below
from leaderworkerset.core.leaderworkerset.groupstate import creates_latest_revision
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress, read_progress
from leaderworkerset.core.leaderworkerset.revisions import Resolution


class RolloutCase(StrEnum):
    """The applicable row of table 5.2."""

    NO_STATEFULSET = "C1"
    NEW_REVISION_SCALING_UP = "C2a"
    NEW_REVISION = "C2b"
    AT_REST = "C3a"
    SCALING_UP = "C3b"
    REPLICAS_EDITED = "C4"
    ROLLING = "C5"


class RolloutInput(NamedTuple):
    """The input of a rollout step. `current` has no replicas if the StatefulSet does not exist."""

    limits: Budget
    current: StatefulSetProgress
    states: States
    exists: bool
    is_new_revision: bool

    @property
    def required_replicas(self) -> int:
        """Return the number of groups to retain while some desired groups are unready or outdated."""
        return self.limits.replicas_needed(count_unready(self.states, self.limits.replicas))


class RolloutRule(NamedTuple):
    """A rollout state with its condition, and the partition and replicas of its step.

    If `releases_gated_groups` is set, gated groups are released regardless of the budget. If `removes_surge_groups` is set, ready surge groups
    are kept as long as they are needed, and an event reports the groups that are deleted (R-ROLL-3).
    """

    case: RolloutCase
    applies: Callable[[RolloutInput], bool]
    partition: Callable[[RolloutInput], int]
    replicas: Callable[[RolloutInput], int]
    releases_gated_groups: bool = False
    removes_surge_groups: bool = False


ROLLOUT: Final = (
    RolloutRule(
        RolloutCase.NO_STATEFULSET,
        applies=lambda now: not now.exists,
        partition=lambda _: 0,
        replicas=lambda now: now.limits.replicas,
    ),
    RolloutRule(
        RolloutCase.NEW_REVISION_SCALING_UP,
        applies=lambda now: now.is_new_revision and now.current.replicas < now.limits.replicas,
        partition=lambda now: now.current.replicas,
        replicas=lambda now: now.limits.replicas,
        releases_gated_groups=True,
    ),
    RolloutRule(
        RolloutCase.NEW_REVISION,
        applies=lambda now: now.is_new_revision,
        partition=lambda now: min(now.current.replicas, now.limits.max_groups),
        replicas=lambda now: now.limits.replicas_needed(now.limits.replicas),
        releases_gated_groups=True,
        removes_surge_groups=True,
    ),
    RolloutRule(
        RolloutCase.AT_REST,
        applies=lambda now: not now.states.moving and now.current[:2] == (now.limits.replicas, 0),
        partition=lambda _: 0,
        replicas=lambda now: now.limits.replicas,
    ),
    RolloutRule(
        RolloutCase.SCALING_UP,
        applies=lambda now: now.current.replicas < now.limits.replicas,
        partition=lambda now: now.current.partition,
        replicas=lambda now: now.limits.replicas,
    ),
    RolloutRule(
        RolloutCase.REPLICAS_EDITED,
        applies=lambda now: now.current.replicas_annotation != str(now.limits.replicas),
        partition=lambda now: min(now.current.partition, now.limits.max_groups),
        replicas=lambda now: now.required_replicas,
        removes_surge_groups=True,
    ),
    RolloutRule(
        RolloutCase.ROLLING,
        applies=lambda _: True,
        partition=lambda now: _limit_partition(now, rolling_partition(now.limits, now.current, now.states)),
        replicas=lambda now: now.required_replicas,
        releases_gated_groups=True,
        removes_surge_groups=True,
    ),
)
"""The rows of table 5.2 of the contract, in order. A new revision initially delays all groups (unlike R-ROLL-10)."""

SHRINKING: Final = {row.case for row in ROLLOUT if row.removes_surge_groups}


class RolloutStep(NamedTuple):
    """The partition and replicas for the leader StatefulSet, and the applicable row."""

    case: RolloutCase
    partition: int
    replicas: int


class Rollout(Struct, frozen=True):
    """A rollout with the StatefulSet (`current`), its next step, and a summary of its groups (`group_summary`).

    `is_at_step` is true if the StatefulSet has the partition and replicas of the step. If nothing is applied, `replaced`
    leaders are deleted, the worst first, and `released` groups are updated in place. `recreate_revision`, if set, is the revision
    from which the StatefulSet must create all leaders from now on.
    """

    limits: Budget
    current: StatefulSetProgress | None
    step: RolloutStep
    is_at_step: bool
    replaced: Sequence[int]
    group_summary: GroupIndex
    released: int = 0
    recreate_revision: str = ""


def advance(
    lws: LeaderWorkerSet,
    statefulset: JSONObject | None,
    current: StatefulSetProgress | None,
    group_summary: GroupIndex,
    revision: Resolution,
    route: RolloutRoute | None = None,
) -> Rollout:
    """Compute the rollout state and its next step. Raise ValueError if the strategy is invalid."""
    limits, size, key = budget.read(lws.spec), lws.spec.leader_worker_template.size, revision.key
    states = group_summary.states(size, key)
    if (moving := group_summary.moving) and current is not None and current.partition == 0 and not revision.is_new:
        states = states._replace(updated=states.updated & ~moving, moving=moving)
    step = next_step(limits, current, states, is_new_revision=revision.is_new)
    if statefulset is None or current is None:
        return Rollout(limits, None, step, is_at_step=False, replaced=(), group_summary=group_summary)
    if current.is_behind:
        step = hold_step(step, current)
    released = 0
    if route is not None:
        span = range(step.partition, min(current.partition, step.replicas))
        released, partition = route.release(statefulset, group_summary, size, span)
        step = step._replace(partition=partition)
    at_step = (current.replicas, current.partition) == (step.replicas, step.partition)
    if not at_step or not (group_summary.members & ~group_summary.leaders.get(key, 0) or group_summary.rejected):
        return Rollout(limits, current, step, at_step, (), group_summary, released)
    replaced, renewal = outdatedleaders.decide(statefulset, group_summary, limits, size=size, key=key)
    return Rollout(limits, current, step, at_step, replaced, group_summary, released, renewal)


def may_create_older(statefulset: JSONObject, key: str) -> bool:
    """Return whether the StatefulSet controller might create pods from a revision other than `key`.

    It does so below the partition, until all replicas are ready and have the latest revision, or 0 replicas are
    desired.
    """
    current = read_progress(statefulset)
    return current.revision != key or current.is_behind or not creates_latest_revision(statefulset)


def next_step(
    limits: Budget, current: StatefulSetProgress | None, states: States, *, is_new_revision: bool = False
) -> RolloutStep:
    """Compute the step of the first applicable row in `ROLLOUT`."""
    now = RolloutInput(limits, current or StatefulSetProgress(0, 0, ""), states, current is not None, is_new_revision)
    row = next(row for row in ROLLOUT if row.applies(now))
    partition, replicas = row.partition(now), row.replicas(now)
    if row.releases_gated_groups:
        partition -= _completed_tail(indexes_below(states.gated, partition), partition)
    lowest = max(partition, limits.partition)
    if row.removes_surge_groups and replicas < now.current.replicas:
        replicas = _replicas_to_retain(now, RolloutStep(row.case, lowest, replicas))
    return RolloutStep(row.case, lowest, replicas)


def hold_step(step: RolloutStep, current: StatefulSetProgress) -> RolloutStep:
    """Return a step that does not release groups. The StatefulSet controller has not observed the previous step.

    Groups that it released may be deleted at any time. Values that the user edited are still applied.
    """
    if step.case != RolloutCase.ROLLING:
        return step
    return RolloutStep(step.case, max(step.partition, current.partition), max(step.replicas, current.replicas))


def _replicas_to_retain(now: RolloutInput, step: RolloutStep) -> int:
    """Return the number of groups to retain, so that `replicas - unavailable` groups remain available.

    A ready group is available if it is updated, below the step's partition, or above the burst after an edit.
    """
    limits, states = now.limits, now.states
    ready = indexes_below(states.ready, now.current.replicas)
    staying = (ready & states.updated) | indexes_below(ready, step.partition)
    spare = max(staying.bit_count() - max(limits.replicas - limits.unavailable, 0), 0)
    surplus = staying >> min(step.replicas, staying.bit_length())
    kept = surplus.bit_count() - spare
    return step.replicas if kept <= 0 else step.replicas + groupindex.shortest_prefix(surplus, kept)


def count_unready(states: States, desired: int) -> int:
    """Count the desired groups that are unready or outdated, including missing groups (R-ROLL-5)."""
    return desired - indexes_below(states.ready & states.updated, desired).bit_count()


def rolling_partition(limits: Budget, current: StatefulSetProgress, states: States) -> int:
    """Compute the next partition. It never increases during a rollout (R-ROLL-6, R-ROLL-7).

    Exhausted groups of an older revision are skipped (N-RB-8, N-AT-21).
    """
    total = current.replicas
    ready = indexes_below(states.ready, total)
    step = limits.unavailable + limits.surge - (limits.max_groups - total)
    base = max(total - _completed_tail(ready & states.updated, total) - step, 0)
    partition = 2 * base - indexes_below(ready | states.exhausted, base).bit_count()
    return min(groupindex.lower_partition(ready & ~states.updated, base, partition, total), current.partition)


def _limit_partition(now: RolloutInput, partition: int) -> int:
    """Raise a partition so that this step retains at least `replicas - unavailable` ready groups.

    After a reverted update, the contract's formula ignores missing groups between its base and its partition. Groups
    above the burst are deleted soon and do not count.
    """
    limits, current, states = now.limits, now.current, now.states
    ready = indexes_below(states.ready, min(current.replicas, limits.max_groups))
    staying = (
        indexes_below(ready, current.partition).bit_count()
        + ((ready & states.updated) >> current.partition).bit_count()
    )
    exhausted = indexes_below(states.exhausted, current.replicas).bit_count()
    spare = max(staying - (limits.replicas - limits.unavailable - exhausted), 0)
    going = indexes_below(ready & ~states.updated, current.partition) >> partition
    kept = going.bit_count() - spare
    return partition if kept <= 0 else partition + groupindex.shortest_prefix(going, kept)


def _completed_tail(done: int, total: int) -> int:
    """Return the number of consecutive completed groups, starting from the highest index."""
    if done.bit_length() < total:
        return 0
    return total - (~done & ((1 << total) - 1)).bit_length()
