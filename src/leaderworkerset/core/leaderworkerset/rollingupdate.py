"""How far a rolling update may proceed: partition and replicas of the leader StatefulSet (contract section 5).

In: the rollout strategy with its percentages resolved (`Budget`), the leader StatefulSet as it is (`Current`) and the
state of each group. Out: a `RolloutStep`. The StatefulSet controller replaces the leaders: a lower partition lets it
proceed. Additional replicas (the surge) replace the capacity of groups that are updated.

Letters as in the contract: R replicas wanted, U groups that may be unavailable, G surge groups, B = R + G the burst,
P the user's partition; S replicas and p partition of the StatefulSet, u wanted groups that are not ready and updated.

States are sets of indexes, a bit for each existing group (`fold`). So a step visits no single group and costs at most
what the highest existing index costs; R and S may be as large as the API allows (2³¹ - 1).

A group is *released* when the partition falls to its index or below, so that it gets the new template. There are eight
intended differences from the Go controller:

- Rounding can leave neither unavailability nor surge (25 % of 2 is 0), and no group could ever be replaced. Here U is
  then 1 (Q-28), and so is `maxUnavailable` of the StatefulSet (R-LSTS-2).
- Groups whose leader has scheduling gates, since a queue has not admitted them, are released first: with the new
  template itself, as far as no other group lies above them. They are unavailable anyway, and Kueue starts pods of an
  older revision without quota while a StatefulSet rolls (R-KQ-61).
- The Go controller counts surge groups by number. It deletes ready ones and keeps others that are not ready, so that
  fewer than R - U groups stay available. Here a ready surge group stays while it is needed for that bound.
- The Go controller treats a leader as ready that is being deleted and has not ended yet. If an update is reverted or
  replaced at that moment, it releases a second group. Here such a group is unavailable, as it is for its users.
- The Go controller gives surge groups a new template at once, even if they replace groups that are not ready yet. Here
  they keep theirs, like all others, until the budget releases them.
- The Go controller counts only the groups below its base as missing. If an update is reverted, groups that are not ready
  yet may lie above it, and one group too many is replaced. Here what stays ready is counted, at any index.
- The Go controller releases groups while the StatefulSet controller may still act on an earlier step. If an update is
  reverted at that moment, both replace a group. Here the next group waits until the StatefulSet controller has observed
  the last step (`wait`).
- The Go controller decides with the size of the spec whether groups are ready. After an edit from or to a size of 1 it
  releases all at once, or waits for ever for those without workers. Here the size counts that a group was created with.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from kuberuntime.objects import intstr
from leaderworkerset.api.leaderworkerset import LeaderWorkerSetSpec
from leaderworkerset.core.leaderworkerset.fold import Folded, below


class Case(StrEnum):
    """The row of table 5.2 that applies."""

    NO_STATEFULSET = "C1"
    NEW_REVISION_SCALING_UP = "C2a"
    NEW_REVISION = "C2b"
    AT_REST = "C3a"
    SCALING_UP = "C3b"
    REPLICAS_EDITED = "C4"
    ROLLING = "C5"


SHRINKING: Final = {Case.NEW_REVISION, Case.REPLICAS_EDITED, Case.ROLLING}
"""The cases that compute how many surge groups to keep, and report those that go (R-ROLL-3)."""


RELEASING: Final = {Case.NEW_REVISION, Case.NEW_REVISION_SCALING_UP, Case.ROLLING}
"""The cases that release gated groups, whatever the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The rollout strategy in numbers of groups (R-ROLL-1)."""

    replicas: int
    partition: int
    unavailable: int
    surge: int

    @property
    def burst(self) -> int:
        """Return the maximum number of groups."""
        return self.replicas + self.surge

    @property
    def max_unavailable(self) -> int:
        """Return how many leaders the StatefulSet controller may replace at once (R-LSTS-2)."""
        return max(1, self.unavailable + self.surge)

    def replicas_needed(self, unready: int) -> int:
        """Return how many groups to keep while `unready` of the wanted ones are not ready and updated (R-ROLL-3)."""
        if unready <= self.surge:
            return self.replicas + max(unready - self.unavailable, 0)
        return self.burst


class Current(NamedTuple):
    """The leader StatefulSet as it is; `annotated` is its `replicas` annotation, verbatim."""

    replicas: int
    partition: int
    annotated: str


class GroupState(NamedTuple):
    """The state of one group for the rollout."""

    is_ready: bool
    is_updated: bool


class States(NamedTuple):
    """The groups that are ready, updated, gated and broken, as sets of indexes (`fold`); others are missing.

    Broken groups are of an older revision, exist, are not being deleted, and are not ready: they may never become so.
    """

    ready: int
    updated: int
    gated: int = 0
    broken: int = 0

    @classmethod
    def of(cls, states: Mapping[int, GroupState]) -> "States":
        """Return the states given by index."""
        return cls(
            sum(1 << index for index, state in states.items() if state.is_ready),
            sum(1 << index for index, state in states.items() if state.is_updated),
        )


class RolloutStep(NamedTuple):
    """The partition and replicas to write to the leader StatefulSet, and the case that led to them."""

    case: Case
    partition: int
    replicas: int


def budget(spec: LeaderWorkerSetSpec) -> Budget:
    """Resolve the percentages of `spec.replicas`; raise ValueError for a value that is neither number nor percentage."""
    config = spec.rollout_strategy.rolling_update_configuration
    surge = min(max(intstr.scale_up(config.max_surge, spec.replicas), 0), spec.replicas)
    unavailable = max(intstr.scale_down(config.max_unavailable, spec.replicas), 0)
    return Budget(
        replicas=spec.replicas,
        partition=config.partition,
        unavailable=max(unavailable, 1) if surge == 0 else unavailable,
        surge=surge,
    )


def next_step(limits: Budget, current: Current | None, states: States, *, is_new_revision: bool = False) -> RolloutStep:
    """Choose the case and compute its step."""
    case, partition, replicas = _choose(limits, current, states, is_new_revision=is_new_revision)
    if case in RELEASING:
        partition -= _tail(below(states.gated, partition), partition)
    held = max(partition, limits.partition)
    if case in SHRINKING and current is not None and replicas < current.replicas:
        replicas = _replicas_kept(limits, current, states, RolloutStep(case, held, replicas))
    return RolloutStep(case, held, replicas)


def wait(step: RolloutStep, current: Current) -> RolloutStep:
    """Return the step that releases no group: the StatefulSet controller has not observed the previous one.

    Groups that were released then may be deleted at any moment, which is not visible yet. Values written by hand or edited
    by the user are still followed.
    """
    if step.case != Case.ROLLING:
        return step
    return RolloutStep(step.case, max(step.partition, current.partition), max(step.replicas, current.replicas))


def begins(current: Current | None, step: RolloutStep) -> bool:
    """Return whether a step releases the first groups of a StatefulSet that holds all of its groups back."""
    return current is not None and step.partition < current.partition >= current.replicas


def is_at(current: Current | None, step: RolloutStep) -> bool:
    """Return whether the leader StatefulSet has the partition and replicas of the step."""
    return current is not None and (current.replicas, current.partition) == (step.replicas, step.partition)


def _choose(limits: Budget, current: Current | None, states: States, *, is_new_revision: bool) -> RolloutStep:
    wanted = limits.replicas
    if current is None:
        return RolloutStep(Case.NO_STATEFULSET, 0, wanted)
    if is_new_revision:
        return _hold_back(limits, current)
    if current.partition == 0 and current.replicas == wanted:
        return RolloutStep(Case.AT_REST, 0, wanted)
    if current.replicas < wanted:
        return RolloutStep(Case.SCALING_UP, current.partition, wanted)
    needed = limits.replicas_needed(count_unready(states, wanted))
    if current.annotated != str(wanted):
        return RolloutStep(Case.REPLICAS_EDITED, min(current.partition, limits.burst), needed)
    partition = rolling_partition(limits, current, states)
    return RolloutStep(Case.ROLLING, _affordable(limits, current, states, partition), needed)


def _replicas_kept(limits: Budget, current: Current, states: States, step: RolloutStep) -> int:
    """Return how many groups to keep so that deleting surge groups leaves `replicas - unavailable` available.

    Available are groups that are ready and stay so with the step's partition: updated already, or below the partition. If
    an edit removed the surge, groups above the burst stay as long as the groups that they replace are not ready.
    """
    ready = below(states.ready, current.replicas)
    staying = (ready & states.updated) | below(ready, step.partition)
    spare = max(staying.bit_count() - max(limits.replicas - limits.unavailable, 0), 0)
    surplus = staying >> min(step.replicas, staying.bit_length())
    kept = surplus.bit_count() - spare
    return step.replicas if kept <= 0 else step.replicas + _length_with(surplus, kept)


def _hold_back(limits: Budget, current: Current) -> RolloutStep:
    """Keep all existing groups at the old template; the next reconcile releases the first ones (unlike R-ROLL-10)."""
    if current.replicas < limits.replicas:
        return RolloutStep(Case.NEW_REVISION_SCALING_UP, current.replicas, limits.replicas)
    held = min(current.replicas, limits.burst)
    return RolloutStep(Case.NEW_REVISION, held, limits.replicas_needed(limits.replicas))


def count_unready(states: States, wanted: int) -> int:
    """Count the wanted groups that are not both ready and updated; missing ones count (R-ROLL-5)."""
    return wanted - below(states.ready & states.updated, wanted).bit_count()


def rolling_partition(limits: Budget, current: Current, states: States) -> int:
    """Compute how far down the partition may move now; it never moves up within a rollout (R-ROLL-6, R-ROLL-7)."""
    total = current.replicas
    ready = below(states.ready, total)
    step = limits.unavailable + limits.surge - (limits.burst - total)
    base = max(total - _tail(ready & states.updated, total) - step, 0)
    partition = base + min(base, total) - below(ready, base).bit_count()
    return min(_down_to_outdated(ready & ~states.updated, base, partition, total), current.partition)


def _affordable(limits: Budget, current: Current, states: States, partition: int) -> int:
    """Raise a partition until `replicas - unavailable` groups stay ready, as far as that depends on this step.

    The contract's formula does not count missing groups between its base and its partition that are about to come back:
    after an update is reverted midway. Broken groups may stay broken, and are not waited for. Groups above the burst do
    not count: an edit left no surge for them, so they end as soon as others are available.
    """
    ready = below(states.ready, min(current.replicas, limits.burst))
    staying = below(ready, current.partition).bit_count() + ((ready & states.updated) >> current.partition).bit_count()
    spare = staying - (limits.replicas - limits.unavailable - below(states.broken, current.replicas).bit_count())
    going = below(ready & ~states.updated, current.partition) >> partition
    kept = going.bit_count() - max(spare, 0)
    return partition if kept <= 0 else partition + _length_with(going, kept)


def _length_with(indexes: int, wanted: int) -> int:
    """Return how many of the lowest bits of a set hold `wanted` members."""
    lengths = range(indexes.bit_length() + 1)
    return bisect_left(lengths, wanted, key=lambda end: below(indexes, end).bit_count())


def _tail(done: int, total: int) -> int:
    """Return how many groups, counted down from the last one, are done without a gap."""
    if done.bit_length() < total:
        return 0
    return total - (~done & ((1 << total) - 1)).bit_length()


def _down_to_outdated(ready_and_outdated: int, base: int, partition: int, total: int) -> int:
    """Move the partition down to `base`, or to just above the highest existing group that is ready and not updated."""
    top = min(partition, total - 1)
    highest = max(below(ready_and_outdated, top + 1).bit_length() - 1, base - 1)
    return highest + 1 if highest < top else partition


def states(folded: Folded, *, size: int, revision: str, replaced: int = 0) -> States:
    """Return the states of the groups; one whose workers do not carry its index is missing (R-ROLL-8).

    Ready are groups that stay so. A group whose leader is being deleted, or whose workers belong to an earlier leader, is
    about to end, and no other may be replaced on its account. Groups that are `replaced` now are recreated, so they are
    not broken.
    """
    named = folded.workers_named | folded.without_workers(size)
    ready, updated = folded.available(size) & named, folded.updated(size, revision) & named
    broken = folded.members & ~folded.deleting & ~ready & ~folded.leaders.get(revision, 0) & ~replaced
    return States(ready, updated, folded.gated, broken)
