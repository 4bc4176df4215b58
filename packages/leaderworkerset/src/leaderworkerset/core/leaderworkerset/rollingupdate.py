"""The state machine of a rollout: the leader StatefulSet and its groups (contract section 5).

In: the LeaderWorkerSet, its leader StatefulSet, the fold of its groups and their desired revision. Out: a
`Rollout`: partition and replicas to write to the StatefulSet, and the leaders to delete.

The StatefulSet controller replaces the leaders that a lower partition releases. Surge replicas replace the capacity of
updated groups. `ROLLOUT` lists the states and their steps; the first row that holds applies.

```
spec edited ─► NEW_REVISION ─► ROLLING ⟲ ─► AT_REST ─► older revisions are retired once no pods of them can be created
               holds all back   lowers the partition as the budget allows, gives      (`may_create_older`)
                                surge groups back; else deletes outdated leaders (`choose`)
replicas edited ─► SCALING_UP, REPLICAS_EDITED ─► ROLLING
```

Letters as in the contract: R desired replicas, U groups that may be unavailable, G surge groups, B = R + G the burst,
P the user's partition; S replicas and p partition of the StatefulSet, u desired groups not both ready and updated.
States are sets of indexes, a bit for each existing group (`fold`). R and S may be as large as the API allows (2³¹ - 1).

A group is *released* when the partition falls to its index or below: it gets the new template. There are eight intended
differences from the Go controller (a ninth is in `budget`; reasons: docs/adr/0010, docs/adr/0030):

- Groups whose leader has scheduling gates are released first, if no other group has a higher index (R-KQ-61).
- Broken groups of an older revision never use up the budget: one group at a time is still released (docs/adr/0030).
- A ready surge group stays while it is needed for `R - U` available groups. The Go controller counts all surge groups.
- A leader that is being deleted is unavailable. To the Go controller it is ready until its pod has ended.
- A new template also holds back surge groups. The Go controller updates all of them at once.
- Missing groups count at any index, not only below the base.
- The next group waits until the StatefulSet controller has observed the last step (`wait`).
- The size with which a group was created counts, not the size in the spec.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset import budget, fold
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.fold import Folded, RolloutRoute, States, below
from leaderworkerset.core.leaderworkerset.groupfacts import is_of_one_revision
from leaderworkerset.core.leaderworkerset.revisions import Resolution


class Case(StrEnum):
    """The row of table 5.2 that applies."""

    NO_STATEFULSET = "C1"
    NEW_REVISION_SCALING_UP = "C2a"
    NEW_REVISION = "C2b"
    AT_REST = "C3a"
    SCALING_UP = "C3b"
    REPLICAS_EDITED = "C4"
    ROLLING = "C5"


class Current(NamedTuple):
    """The current leader StatefulSet; `annotated` is its `replicas` annotation, verbatim."""

    replicas: int
    partition: int
    annotated: str


class CaseFacts(NamedTuple):
    """The facts for a step; `current` has no replicas if the StatefulSet does not exist."""

    limits: Budget
    current: Current
    states: States
    exists: bool
    is_new_revision: bool

    @property
    def needed(self) -> int:
        """Return how many groups to keep while some desired groups are not both ready and updated."""
        return self.limits.replicas_needed(count_unready(self.states, self.limits.replicas))


class CaseRule(NamedTuple):
    """A state of a rollout: when it holds, and the partition and replicas of its step.

    If it `releases`, gated groups are released whatever the budget. If it `shrinks`, ready surge groups are kept as
    long as they are needed, and an event reports the groups that are deleted (R-ROLL-3).
    """

    case: Case
    holds: Callable[[CaseFacts], bool]
    partition: Callable[[CaseFacts], int]
    replicas: Callable[[CaseFacts], int]
    releases: bool = False
    shrinks: bool = False


ROLLOUT: Final = (
    CaseRule(
        Case.NO_STATEFULSET,
        holds=lambda now: not now.exists,
        partition=lambda _: 0,
        replicas=lambda now: now.limits.replicas,
    ),
    CaseRule(
        Case.NEW_REVISION_SCALING_UP,
        holds=lambda now: now.is_new_revision and now.current.replicas < now.limits.replicas,
        partition=lambda now: now.current.replicas,
        replicas=lambda now: now.limits.replicas,
        releases=True,
    ),
    CaseRule(
        Case.NEW_REVISION,
        holds=lambda now: now.is_new_revision,
        partition=lambda now: min(now.current.replicas, now.limits.burst),
        replicas=lambda now: now.limits.replicas_needed(now.limits.replicas),
        releases=True,
        shrinks=True,
    ),
    CaseRule(
        Case.AT_REST,
        holds=lambda now: not now.states.moving and now.current[:2] == (now.limits.replicas, 0),
        partition=lambda _: 0,
        replicas=lambda now: now.limits.replicas,
    ),
    CaseRule(
        Case.SCALING_UP,
        holds=lambda now: now.current.replicas < now.limits.replicas,
        partition=lambda now: now.current.partition,
        replicas=lambda now: now.limits.replicas,
    ),
    CaseRule(
        Case.REPLICAS_EDITED,
        holds=lambda now: now.current.annotated != str(now.limits.replicas),
        partition=lambda now: min(now.current.partition, now.limits.burst),
        replicas=lambda now: now.needed,
        shrinks=True,
    ),
    CaseRule(
        Case.ROLLING,
        holds=lambda _: True,
        partition=lambda now: _affordable(now, rolling_partition(now.limits, now.current, now.states)),
        replicas=lambda now: now.needed,
        releases=True,
        shrinks=True,
    ),
)
"""Table 5.2 of the contract, in its order. A new revision holds all groups back at first (unlike R-ROLL-10)."""

SHRINKING: Final = {row.case for row in ROLLOUT if row.shrinks}


class RolloutStep(NamedTuple):
    """The partition and replicas to write to the leader StatefulSet, and the case that led to them."""

    case: Case
    partition: int
    replicas: int


class Rollout(Struct, frozen=True):
    """The state of a rollout: its next step for the StatefulSet (`current`), and the observed groups (`folded`).

    The step `begins` an update if it releases the first groups. It is `at_step` if the StatefulSet has its partition
    and replicas. If nothing is applied, `replaced` leaders are deleted, the worst first, and `released` groups updated
    in place.
    """

    limits: Budget
    current: Current | None
    step: RolloutStep
    begins: bool
    at_step: bool
    replaced: Sequence[int]
    folded: Folded
    released: int = 0


def advance(
    lws: LeaderWorkerSet,
    statefulset: JSONObject | None,
    folded: Folded,
    revision: Resolution,
    route: RolloutRoute | None = None,
) -> Rollout:
    """Compute the state of the rollout and its next step; raise ValueError for an unusable strategy."""
    limits, size, key = budget.read(lws.spec), lws.size, revision.key
    left_behind = 0 if statefulset is None else _abandoned(statefulset, folded, limits=limits, size=size, key=key)
    current = None if statefulset is None else position(statefulset)
    states = folded.states(size, key, replaced=left_behind | folded.updating)
    if (moving := folded.departing) and current is not None and current.partition == 0 and not revision.is_new:
        states = states._replace(updated=states.updated & ~moving, moving=moving)
    step = next_step(limits, current, states, is_new_revision=revision.is_new)
    if statefulset is None or current is None:
        return Rollout(limits, None, step, begins=False, at_step=False, replaced=(), folded=folded)
    if is_behind(statefulset):
        step = wait(step, current)
    released = 0
    if route is not None:
        span = range(step.partition, min(current.partition, step.replicas))
        released, partition = route.release(statefulset, folded, size, span)
        step = step._replace(partition=partition)
    at_step = (current.replicas, current.partition) == (step.replicas, step.partition)
    begins = bool(released or step.partition < current.partition) and current.partition >= current.replicas
    replaced = choose(statefulset, folded, limits=limits, size=size, key=key) if at_step else ()
    return Rollout(limits, current, step, begins, at_step, replaced, folded, released)


def position(statefulset: JSONObject) -> Current:
    """Return the progress of the rollout of a leader StatefulSet."""
    spec = meta.spec(statefulset)
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    return Current(
        replicas=int(spec.get("replicas", 1)),
        partition=int(rolling.get("partition") or 0),
        annotated=meta.annotations(statefulset).get(labels.REPLICAS, ""),
    )


def is_behind(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet was changed since the last report of its controller, if there was a report."""
    return bool(meta.status(statefulset).get("observedGeneration")) and not meta.is_observed(statefulset)


def may_create_older(statefulset: JSONObject, key: str) -> bool:
    """Return whether the StatefulSet controller may create pods of another revision than `key`.

    It does so below the partition, until all replicas are ready and have the newest revision, or 0 are desired.
    """
    is_rolled = not is_behind(statefulset) and is_of_one_revision(statefulset)
    return groupname.revision(statefulset) != key or not is_rolled


def next_step(limits: Budget, current: Current | None, states: States, *, is_new_revision: bool = False) -> RolloutStep:
    """Compute the step of the first row of `ROLLOUT` that holds."""
    now = CaseFacts(limits, current or Current(0, 0, ""), states, current is not None, is_new_revision)
    row = next(row for row in ROLLOUT if row.holds(now))
    partition, replicas = row.partition(now), row.replicas(now)
    if row.releases:
        partition -= _tail(below(states.gated, partition), partition)
    lowest = max(partition, limits.partition)
    if row.shrinks and replicas < now.current.replicas:
        replicas = _replicas_kept(now, RolloutStep(row.case, lowest, replicas))
    return RolloutStep(row.case, lowest, replicas)


def wait(step: RolloutStep, current: Current) -> RolloutStep:
    """Return the step that releases no group: the StatefulSet controller has not observed the previous one.

    Groups that it released may be deleted at any moment. Values that the user edited are still followed.
    """
    if step.case != Case.ROLLING:
        return step
    return RolloutStep(step.case, max(step.partition, current.partition), max(step.replicas, current.replicas))


def _replicas_kept(now: CaseFacts, step: RolloutStep) -> int:
    """Return how many groups to keep so that deleting surge groups leaves `replicas - unavailable` available.

    A ready group is available if it is updated, below the step's partition, or above the burst after an edit.
    """
    limits, states = now.limits, now.states
    ready = below(states.ready, now.current.replicas)
    staying = (ready & states.updated) | below(ready, step.partition)
    spare = max(staying.bit_count() - max(limits.replicas - limits.unavailable, 0), 0)
    surplus = staying >> min(step.replicas, staying.bit_length())
    kept = surplus.bit_count() - spare
    return step.replicas if kept <= 0 else step.replicas + fold.shortest_with(surplus, kept)


def count_unready(states: States, desired: int) -> int:
    """Count the desired groups that are not both ready and updated, with the missing groups (R-ROLL-5)."""
    return desired - below(states.ready & states.updated, desired).bit_count()


def rolling_partition(limits: Budget, current: Current, states: States) -> int:
    """Compute how far down the partition may move now; it never moves up within a rollout (R-ROLL-6, R-ROLL-7).

    Exhausted groups of an older revision are skipped (N-RB-8, N-AT-21). Broken groups never use up the budget (ADR 30).
    """
    total = current.replicas
    ready = below(states.ready, total)
    step = limits.unavailable + limits.surge - (limits.burst - total)
    base = max(total - _tail(ready & states.updated, total) - step, 0)
    returning = base - below(ready | states.broken | states.exhausted, base).bit_count()
    broken = below(states.broken & ~states.exhausted, base).bit_count()
    partition = base + returning + min(broken, max(step - 1, 0))
    return min(fold.down_to_outdated(ready & ~states.updated, base, partition, total), current.partition)


def _affordable(now: CaseFacts, partition: int) -> int:
    """Raise a partition until `replicas - unavailable` groups stay ready, as far as that depends on this step.

    After a reverted update, the contract's formula ignores missing groups between its base and its partition. If broken
    groups use up the budget and none is missing, one may be released. Groups above the burst end soon and do not count.
    """
    limits, current, states = now.limits, now.current, now.states
    total = min(current.replicas, limits.burst)
    ready, broken = below(states.ready, total), below(states.broken, total)
    staying = below(ready, current.partition).bit_count() + ((ready & states.updated) >> current.partition).bit_count()
    exhausted = below(states.exhausted, current.replicas).bit_count()
    is_blocked = bool(broken) and (ready | broken).bit_count() == total
    spare = max(staying - (limits.replicas - limits.unavailable - exhausted), is_blocked)
    going = below(ready & ~states.updated, current.partition) >> partition
    kept = going.bit_count() - spare
    return partition if kept <= 0 else partition + fold.shortest_with(going, kept)


def _tail(done: int, total: int) -> int:
    """Return the number of consecutive groups, from the highest index down, that are done."""
    if done.bit_length() < total:
        return 0
    return total - (~done & ((1 << total) - 1)).bit_length()


def choose(statefulset: JSONObject, folded: Folded, *, limits: Budget, size: int, key: str) -> list[int]:
    """Return the groups whose outdated leaders must be deleted, the worst first (docs/adr/0004-max-unavailable.md).

    The StatefulSet controller would never replace them (`_abandoned`), or only one at a time (`needs_help`). An
    available group is only replaced while more than `replicas - unavailable` are available, or if broken groups block
    the rollout.
    """
    if not has_looked(statefulset):  # a controller that is down recreates nothing
        return []
    left_behind = _abandoned(statefulset, folded, limits=limits, size=size, key=key) | _refused(
        statefulset, folded, limits
    )
    partition = position(statefulset).partition
    available = living(statefulset, folded) & folded.available(size)
    outdated = _outdated(statefulset, folded, key)
    exhausted = below(folded.exhausted & ~folded.leaders.get(key, 0), position(statefulset).replicas)
    is_blocked = bool(below(outdated & ~available & ~left_behind, partition))
    is_blocked &= (available >> partition).bit_count() == position(statefulset).replicas - partition
    rolled = outdated & ~below(outdated, partition)
    if not needs_help(statefulset) and not exhausted and not is_blocked:
        # A StatefulSet controller that knows maxUnavailable counts broken leaders, and replaces none at that number.
        return [*fold.highest(left_behind | rolled & ~folded.leader_ready)]
    spare = max(available.bit_count() - (limits.replicas - limits.unavailable - exhausted.bit_count()), is_blocked)
    return [*fold.highest(rolled & ~available | left_behind), *islice(fold.highest(rolled & available), spare)]


def _abandoned(statefulset: JSONObject, folded: Folded, *, limits: Budget, size: int, key: str) -> int:
    """Return the groups that no revision of the StatefulSet would repair, and that its partition keeps.

    Groups below the user's partition stay unchanged. So do the highest groups, if they would be created from an older
    revision: the rollout reaches them first, and would replace them again.
    """
    if not has_looked(statefulset):
        return 0
    available, outdated = folded.available(size), _outdated(statefulset, folded, key)
    below_partition = below(outdated, position(statefulset).partition)
    status = meta.status(statefulset)
    if status.get("currentRevision") != status.get("updateRevision"):
        below_partition = below(below_partition, (outdated & available).bit_length())
    lost = below_partition & ~available & ~folded.gated & ~_made_of(statefulset, folded, "currentRevision")
    lost = lost & ~folded.updating | below_partition & folded.stranded
    return lost & ~below(lost, limits.partition)


def _refused(statefulset: JSONObject, folded: Folded, limits: Budget) -> int:
    """Return the groups that their nodes do not resize, once leaders get the revision or the partition keeps them."""
    refused = living(statefulset, folded) & folded.refused
    return refused & ~below(refused, position(statefulset).partition) | below(refused, limits.partition)


def needs_help(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet controller ignores `maxUnavailable`: the default of Kubernetes before 1.37."""
    strategy = meta.spec(statefulset).get("updateStrategy") or {}
    return has_looked(statefulset) and "maxUnavailable" not in (strategy.get("rollingUpdate") or {})


def is_rolling(statefulset: JSONObject, folded: Folded) -> bool:
    """Return whether the StatefulSet controller may delete leaders for an update now."""
    outdated = living(statefulset, folded) & ~_made_of(statefulset, folded, "updateRevision")
    return not has_looked(statefulset) or bool(outdated >> position(statefulset).partition)


def living(statefulset: JSONObject, folded: Folded) -> int:
    """Return the groups that the StatefulSet has, and keeps."""
    return below(folded.members & ~folded.deleting, position(statefulset).replicas)


def _outdated(statefulset: JSONObject, folded: Folded, key: str) -> int:
    """Return the groups whose leaders have neither the revision nor the StatefulSet's update revision."""
    return living(statefulset, folded) & ~folded.leaders.get(key, 0) & ~_made_of(statefulset, folded, "updateRevision")


def has_looked(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet controller has observed the current StatefulSet."""
    return meta.is_observed(statefulset) and bool(meta.status(statefulset).get("updateRevision"))


def _made_of(statefulset: JSONObject, folded: Folded, which: str) -> int:
    """Return the groups whose leaders were created from this revision of the StatefulSet."""
    return folded.statefulset_revisions.get(meta.status(statefulset).get(which) or "", 0)
