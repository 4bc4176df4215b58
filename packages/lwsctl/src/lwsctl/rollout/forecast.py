"""Simulates a rollout with the controller's logic, assuming that groups become ready as expected. Pure.

The input is the rollout strategy in numbers, and the current groups. The output is waves with the replaced groups,
and the maximum number of groups and minimum number of available groups over all waves. The core makes the decisions
(`rollingupdate.next_step`, `outdatedleaders.py`). Only the StatefulSet controller is modeled. It immediately creates
all missing leaders, with the new revision at or above the partition. All groups with the new revision are ready
before the next wave.

Groups are bits of an integer as in `fold`. A rollout has at most one wave for each group, and `LARGEST` limits both.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.decisions.rolloutsteps import (
    Budget,
    GroupIndex,
    RolloutLeaders,
    StatefulSetProgress,
    States,
    choose_outdated_leaders,
    highest_indexes,
    indexes_below,
    next_rollout_step,
    renewal_of,
)

LARGEST: Final = 10_000
"""The maximum number of groups in a forecast."""

OLD: Final = "old"
NEW: Final = "new"


class TooLargeError(ValueError):
    """Raised if the rollout has more groups than a forecast supports."""


class RolloutStage(Struct, frozen=True, kw_only=True):
    """A wave with the created groups, the number of surplus groups, and the number of available groups."""

    groups: tuple[int, ...]
    surge: int
    available_groups: int


class Forecast(Struct, frozen=True, kw_only=True):
    """All waves of a rollout.

    `held_groups` groups keep the old revision. If `is_stuck` is set, the rollout does not complete.
    """

    waves: tuple[RolloutStage, ...]
    held_groups: int
    is_stuck: bool

    @property
    def max_surge(self) -> int:
        """Return the maximum number of groups in excess of the desired number."""
        return max((wave.surge for wave in self.waves), default=0)

    @property
    def min_available(self) -> int | None:
        """Return the minimum number of available groups, or None if no group is changed."""
        return min((wave.available_groups for wave in self.waves), default=None)


class RolloutState(Struct, frozen=True):
    """The leader StatefulSet and its existing, ready, updated, and exhausted groups."""

    current: StatefulSetProgress
    members: int = 0
    ready: int = 0
    updated: int = 0
    exhausted: int = 0


def forecast(limits: Budget, world: RolloutState, *, is_new_revision: bool) -> Forecast:
    """Simulate the rollout after a change. If the revision is new, none of the existing groups has it.

    Raise `TooLargeError` for more than `LARGEST` groups.
    """
    current = world.current
    if max(limits.replicas, current.replicas - limits.replicas) > LARGEST:
        raise TooLargeError(f"forecasts are limited to {LARGEST} groups")
    waves: list[RolloutStage] = []
    last = world
    for state, wave in _waves(world, limits, is_new_revision=is_new_revision):
        last = state
        waves.append(wave)
    outdated = indexes_below(last.members & ~last.updated, limits.replicas)
    held_count = indexes_below(outdated, limits.partition).bit_count()
    has_room = last.current.replicas == limits.replicas or held_count > 0  # surge groups replace the blocked groups
    is_done = outdated.bit_count() == held_count and has_room
    return Forecast(waves=tuple(waves), held_groups=held_count, is_stuck=not is_done)


def _waves(
    world: RolloutState, limits: Budget, *, is_new_revision: bool
) -> Iterator[tuple[RolloutState, RolloutStage]]:
    """Yield each state and the wave that resulted in it, until the state no longer changes.

    Groups below the partition are created with the old revision, if it exists. After a reverted update it does not
    exist, because the StatefulSet still has the desired revision. The lowest group indicates this, because it is
    updated last.
    """
    is_new = is_new_revision
    lowest = world.members & -world.members
    is_taken_back = is_new_revision and bool(world.updated & lowest)
    has_old = not is_taken_back and (is_new_revision or bool(world.members & ~world.updated))
    for _ in range(4 * LARGEST):
        decided = _apply_controller(world, limits, is_new_revision=is_new)
        is_new = False
        has_old = has_old and not renewal_of(_rollout_leaders(decided, limits, current=OLD))
        replaced = choose_outdated_leaders(_rollout_leaders(decided, limits, current=OLD if has_old else NEW))
        kept = decided.members & ~sum(1 << index for index in replaced)
        members = (1 << decided.current.replicas) - 1
        creations = members & ~kept
        outdated = indexes_below(creations, decided.current.partition) if has_old else 0
        updated = (decided.updated & kept) | (creations & ~outdated)
        exhausted = decided.exhausted & kept
        ready = ((decided.ready & kept) | creations | updated) & ~exhausted
        ended = replace(decided, members=members, ready=ready, updated=updated, exhausted=exhausted)
        if creations or world.members & ~members:
            extra = max(decided.current.replicas - limits.replicas, 0)
            available = (decided.ready & kept).bit_count()
            yield ended, RolloutStage(groups=tuple(highest_indexes(creations)), surge=extra, available_groups=available)
        elif ended == world:
            return
        world = ended


def _apply_controller(world: RolloutState, limits: Budget, *, is_new_revision: bool) -> RolloutState:
    """Return the state after the controller changed the StatefulSet as far as possible without surplus groups.

    The controller waits for added groups before it continues.
    """
    while True:
        states = States(world.ready, world.updated, exhausted=world.exhausted & ~world.updated)
        step = next_rollout_step(limits, world.current, states, is_new_revision=is_new_revision)
        current = StatefulSetProgress(step.replicas, step.partition, str(limits.replicas))
        moved = replace(
            world,
            current=current,
            members=indexes_below(world.members, current.replicas),
            ready=indexes_below(world.ready, current.replicas),
            updated=indexes_below(world.updated, current.replicas),
            exhausted=indexes_below(world.exhausted, current.replicas),
        )
        is_moved = moved != world
        world, is_new_revision = moved, False
        if not is_moved or current.replicas > indexes_below(world.members, current.replicas).bit_count():
            return world


def _rollout_leaders(world: RolloutState, limits: Budget, *, current: str) -> RolloutLeaders:
    """Return the leaders. `current` is the revision of the groups below the partition."""
    group_summary = GroupIndex(
        members=world.members,
        leader_ready=world.ready,
        exhausted=world.exhausted,
        leaders={NEW: world.updated, OLD: world.members & ~world.updated},
        statefulset_revisions={NEW: world.updated, OLD: world.members & ~world.updated},
    )
    return RolloutLeaders.from_statefulset(_statefulset(world.current, current), group_summary, limits, size=1, key=NEW)


def _statefulset(current: StatefulSetProgress, revision: str) -> JSONObject:
    """Return a leader StatefulSet that its controller has observed and whose leaders the manager replaces."""
    return {
        "metadata": {"generation": 1},
        "spec": {
            "replicas": current.replicas,
            "updateStrategy": {"rollingUpdate": {"partition": current.partition}},
        },
        "status": {"observedGeneration": 1, "updateRevision": NEW, "currentRevision": revision},
    }
