"""The forecast of a rollout, step by step: the controller's decisions for groups that become ready as expected. Pure.

In: the rollout strategy in numbers, the current groups. Out: waves, each with the groups replaced in it; and the
maximum of groups and the minimum of available groups over all waves. The decisions are those of the core
(`rollingupdate.next_step`, `outdatedleaders.py`). Only the StatefulSet controller is modeled: it creates all missing
leaders at once, those at or above the partition from the new revision, and every group of the new revision is ready
before the next wave.

Groups are bits of an integer as in `fold`. A rollout has at most one wave for each group; `LARGEST` limits both.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.decisions.rolloutsteps import (
    Budget,
    Current,
    Folded,
    RolloutLeaders,
    States,
    choose_outdated_leaders,
    highest_indexes,
    indexes_below,
    next_rollout_step,
    renewal_of,
)

LARGEST: Final = 10_000
"""The maximum number of groups for which a forecast is made."""

OLD: Final = "old"
NEW: Final = "new"


class TooLargeError(ValueError):
    """A rollout with more groups than a forecast supports."""


class Wave(Struct, frozen=True, kw_only=True):
    """One wave: its created groups, the number of surplus groups, and the number of available groups during it."""

    groups: tuple[int, ...]
    extra: int
    available: int


class Forecast(Struct, frozen=True, kw_only=True):
    """All waves of a rollout. `held` groups keep the old revision; with `is_stuck` it would not end by itself."""

    waves: tuple[Wave, ...]
    held: int
    is_stuck: bool

    @property
    def extra(self) -> int:
        """Return the maximum of groups beyond the desired ones at any time."""
        return max((wave.extra for wave in self.waves), default=0)

    @property
    def available(self) -> int | None:
        """Return the minimum of available groups at any time; None if no group changes."""
        return min((wave.available for wave in self.waves), default=None)


class World(Struct, frozen=True):
    """The leader StatefulSet, and its groups: existing, ready, of the desired revision, and exhausted ones."""

    current: Current
    members: int = 0
    ready: int = 0
    updated: int = 0
    exhausted: int = 0


def forecast(limits: Budget, world: World, *, is_new_revision: bool) -> Forecast:
    """Simulate the rollout that follows a change; with a new revision the existing groups are not updated.

    Raise `TooLargeError` for more than `LARGEST` groups.
    """
    current = world.current
    if max(limits.replicas, current.replicas - limits.replicas) > LARGEST:
        raise TooLargeError(f"more than {LARGEST} groups: a forecast is made for fewer only")
    waves: list[Wave] = []
    last = world
    for state, wave in _waves(world, limits, is_new_revision=is_new_revision):
        last = state
        waves.append(wave)
    outdated = indexes_below(last.members & ~last.updated, limits.replicas)
    held_count = indexes_below(outdated, limits.partition).bit_count()
    has_room = last.current.replicas == limits.replicas or held_count > 0  # surge groups replace those that are held
    is_done = outdated.bit_count() == held_count and has_room
    return Forecast(waves=tuple(waves), held=held_count, is_stuck=not is_done)


def _waves(world: World, limits: Budget, *, is_new_revision: bool) -> Iterator[tuple[World, Wave]]:
    """Yield each state with the wave that led to it, until nothing changes any more.

    Groups below the partition are created from the old revision, if there is one. A reverted update has none: the
    StatefulSet still has the desired revision, as the lowest group shows, which is updated last.
    """
    is_new = is_new_revision
    lowest = world.members & -world.members
    is_taken_back = is_new_revision and bool(world.updated & lowest)
    has_old = not is_taken_back and (is_new_revision or bool(world.members & ~world.updated))
    for _ in range(4 * LARGEST):
        decided = _decide(world, limits, is_new_revision=is_new)
        is_new = False
        has_old = has_old and not renewal_of(_leaders(decided, limits, current=OLD))
        replaced = choose_outdated_leaders(_leaders(decided, limits, current=OLD if has_old else NEW))
        kept = decided.members & ~sum(1 << index for index in replaced)
        whole = (1 << decided.current.replicas) - 1
        creations = whole & ~kept
        outdated = indexes_below(creations, decided.current.partition) if has_old else 0
        updated = (decided.updated & kept) | (creations & ~outdated)
        exhausted = decided.exhausted & kept
        ready = ((decided.ready & kept) | creations | updated) & ~exhausted
        ended = replace(decided, members=whole, ready=ready, updated=updated, exhausted=exhausted)
        if creations or world.members & ~whole:
            extra = max(decided.current.replicas - limits.replicas, 0)
            available = (decided.ready & kept).bit_count()
            yield ended, Wave(groups=tuple(highest_indexes(creations)), extra=extra, available=available)
        elif ended == world:
            return
        world = ended


def _decide(world: World, limits: Budget, *, is_new_revision: bool) -> World:
    """Return the state after the controller has changed the StatefulSet as far as it can; surplus groups are deleted.

    It waits for groups that it adds before it continues.
    """
    while True:
        states = States(world.ready, world.updated, exhausted=world.exhausted & ~world.updated)
        step = next_rollout_step(limits, world.current, states, is_new_revision=is_new_revision)
        current = Current(step.replicas, step.partition, str(limits.replicas))
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


def _leaders(world: World, limits: Budget, *, current: str) -> RolloutLeaders:
    """Return the leaders; `current` is the revision of groups below the partition."""
    folded = Folded(
        members=world.members,
        leader_ready=world.ready,
        exhausted=world.exhausted,
        leaders={NEW: world.updated, OLD: world.members & ~world.updated},
        statefulset_revisions={NEW: world.updated, OLD: world.members & ~world.updated},
    )
    return RolloutLeaders.of(_statefulset(world.current, current), folded, limits, size=1, key=NEW)


def _statefulset(current: Current, revision: str) -> JSONObject:
    """Return a leader StatefulSet that its controller has observed, and whose leaders lws replaces."""
    return {
        "metadata": {"generation": 1},
        "spec": {
            "replicas": current.replicas,
            "updateStrategy": {"rollingUpdate": {"partition": current.partition}},
        },
        "status": {"observedGeneration": 1, "updateRevision": NEW, "currentRevision": revision},
    }
