"""How far a rolling update may go now: the partition and the replicas of the leader StatefulSet (contract section 5).

In: the rollout strategy with its percentages resolved (`Budget`), the leader StatefulSet as it is (`Current`) and
the state of each group. Out: a `Step`. The StatefulSet controller does the rolling; lowering the partition is how it is
told to go on, and additional replicas (the surge) make up for groups that are being replaced.

Letters as in the contract: R replicas wanted, U groups that may be unavailable, G surge groups, B = R + G the burst,
P the user's partition; S replicas and p partition of the StatefulSet, u wanted groups that are not ready and updated.

States are sets of indexes, a bit for each group that exists (`fold`). So a step visits no group by itself, costs at most
what the highest existing index costs, and R and S may be as large as the API allows (2³¹ - 1).

Eight places differ on purpose:

- Percentages can leave neither unavailability nor surge (25 % of 2 rounds down to 0), and no group could ever be
  replaced. Here U is then 1 (Q-28), which is what the StatefulSet gets as well (R-LSTS-2).
- Groups whose leader has scheduling gates, since a queue has not admitted them, are let go first: with the new template
  itself, as far as nothing else lies above them. They are unavailable anyway; and Kueue starts pods of an older revision
  without quota while a StatefulSet rolls (R-KQ-61).
- The Go controller counts surge groups by number. It gives back those that are ready while others, which it keeps, are
  not, and fewer than R - U groups stay available. Here a ready surge group stays while the bound needs it.
- The Go controller takes a leader for ready that is being deleted and has not ended yet. Where an update is reverted or
  replaced in that moment, it lets a second group go. Here such a group is unavailable, as it is for its users.
- The Go controller gives surge groups a new template at once, though they may stand in for groups that are on their way.
  Here they are kept like all others until the budget lets them go.
- The Go controller counts only the groups below its base as missing. Where an update is taken back, others on their way
  may stand above it, and a group too many goes. Here what stays ready is counted, wherever it stands.
- The Go controller lets groups go while the StatefulSet controller may still act on what it was told before. Where an
  update is taken back in that moment, both let a group go. Here the next group waits until the StatefulSet controller
  has observed the last step (`wait`).
- The Go controller takes groups for ready by the size of the spec. After an edit from or to a size of 1 it lets all go at
  once, or waits for ever for those without workers. Here a group is ready as it was made.
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
    """The row of table 5.2 that was taken."""

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
"""The cases that let gated groups go, whatever the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The rollout strategy in numbers of groups (R-ROLL-1)."""

    replicas: int
    partition: int
    unavailable: int
    surge: int

    @property
    def burst(self) -> int:
        """Return the most groups there may be."""
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


class State(NamedTuple):
    """One group as the rollout sees it."""

    is_ready: bool
    is_updated: bool


class States(NamedTuple):
    """The groups that are ready, updated, gated and broken, as sets of indexes (`fold`); others are missing.

    Broken are those of an older revision that are there, stay, and are not ready: nothing says that they will be.
    """

    ready: int
    updated: int
    gated: int = 0
    broken: int = 0

    @classmethod
    def of(cls, states: Mapping[int, State]) -> "States":
        """Return the states given by index."""
        return cls(
            sum(1 << index for index, state in states.items() if state.is_ready),
            sum(1 << index for index, state in states.items() if state.is_updated),
        )


class Step(NamedTuple):
    """What to write to the leader StatefulSet, and which case led there."""

    case: Case
    partition: int
    replicas: int


def budget(spec: LeaderWorkerSetSpec) -> Budget:
    """Resolve the percentages on `spec.replicas`; raise ValueError for a value that is neither number nor percentage."""
    config = spec.rollout_strategy.rolling_update_configuration
    surge = min(max(intstr.scale_up(config.max_surge, spec.replicas), 0), spec.replicas)
    unavailable = max(intstr.scale_down(config.max_unavailable, spec.replicas), 0)
    return Budget(
        replicas=spec.replicas,
        partition=config.partition,
        unavailable=max(unavailable, 1) if surge == 0 else unavailable,
        surge=surge,
    )


def next_step(limits: Budget, current: Current | None, states: States, *, is_new_revision: bool = False) -> Step:
    """Choose the case and compute its step."""
    case, partition, replicas = _choose(limits, current, states, is_new_revision=is_new_revision)
    if case in RELEASING:
        partition -= _tail(below(states.gated, partition), partition)
    held = max(partition, limits.partition)
    if case in SHRINKING and current is not None and replicas < current.replicas:
        replicas = _replicas_kept(limits, current, states, Step(case, held, replicas))
    return Step(case, held, replicas)


def wait(step: Step, current: Current) -> Step:
    """Return the step that lets no group go: the StatefulSet controller has not observed the one before it.

    What was let go then may be taken down at any moment, and is not seen to be on its way. What was written by hand, or
    edited by the user, is still followed.
    """
    if step.case != Case.ROLLING:
        return step
    return Step(step.case, max(step.partition, current.partition), max(step.replicas, current.replicas))


def _choose(limits: Budget, current: Current | None, states: States, *, is_new_revision: bool) -> Step:
    wanted = limits.replicas
    if current is None:
        return Step(Case.NO_STATEFULSET, 0, wanted)
    if is_new_revision:
        return _hold_back(limits, current)
    if current.partition == 0 and current.replicas == wanted:
        return Step(Case.AT_REST, 0, wanted)
    if current.replicas < wanted:
        return Step(Case.SCALING_UP, current.partition, wanted)
    needed = limits.replicas_needed(count_unready(states, wanted))
    if current.annotated != str(wanted):
        return Step(Case.REPLICAS_EDITED, min(current.partition, limits.burst), needed)
    partition = rolling_partition(limits, current, states)
    return Step(Case.ROLLING, _affordable(limits, current, states, partition), needed)


def _replicas_kept(limits: Budget, current: Current, states: States, step: Step) -> int:
    """Return how many groups to keep so that giving surge groups back leaves `replicas - unavailable` available.

    Available is what is ready and stays so with the step's partition: updated already, or below the partition. Where an
    edit took the surge away, groups above the burst stay as long as those that they stand in for are on their way.
    """
    ready = below(states.ready, current.replicas)
    staying = (ready & states.updated) | below(ready, step.partition)
    spare = max(staying.bit_count() - max(limits.replicas - limits.unavailable, 0), 0)
    surplus = staying >> min(step.replicas, staying.bit_length())
    kept = surplus.bit_count() - spare
    return step.replicas if kept <= 0 else step.replicas + _length_with(surplus, kept)


def _hold_back(limits: Budget, current: Current) -> Step:
    """Keep all groups there are at the old template; the next look lets the first ones go (unlike R-ROLL-10)."""
    if current.replicas < limits.replicas:
        return Step(Case.NEW_REVISION_SCALING_UP, current.replicas, limits.replicas)
    held = min(current.replicas, limits.burst)
    return Step(Case.NEW_REVISION, held, limits.replicas_needed(limits.replicas))


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
    """Raise a partition until what is ready and stays ready is `replicas - unavailable`, as far as it depends on this step.

    The arithmetic of the contract does not count the groups between its base and its partition that are missing, and
    about to come back: after an update is taken back on its way. Those that are broken may stay so, and are not waited for.
    Groups above the burst do not count: an edit left no surge for them, so they end as soon as others are available.
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
    """Return how many of the groups, counted from the last one down, are done without a gap."""
    if done.bit_length() < total:
        return 0
    return total - (~done & ((1 << total) - 1)).bit_length()


def _down_to_outdated(ready_and_outdated: int, base: int, partition: int, total: int) -> int:
    """Move the partition down to `base`, or to just above the highest group there that is ready and not updated."""
    top = min(partition, total - 1)
    highest = max(below(ready_and_outdated, top + 1).bit_length() - 1, base - 1)
    return highest + 1 if highest < top else partition


def states(folded: Folded, *, size: int, revision: str, replaced: int = 0) -> States:
    """Return the states of the groups; one whose workers do not carry its index is missing (R-ROLL-8).

    Ready are those that stay so: a group whose leader is being deleted, or whose workers are those of the leader
    before, is about to end, and no other may be taken down on its account. Those that are `replaced` come back, and are
    not broken for good.
    """
    named = folded.workers_named | folded.without_workers(size)
    ready, updated = folded.available(size) & named, folded.updated(size, revision) & named
    broken = folded.members & ~folded.deleting & ~ready & ~folded.leaders.get(revision, 0) & ~replaced
    return States(ready, updated, folded.gated, broken)
