"""Measures one reconciliation of the largest LeaderWorkerSet that an API server stores.

Largest is the LeaderWorkerSet whose objects are all stored: itself, its revision and its leader StatefulSet, which is
often larger. `refused` is the creation of a LeaderWorkerSet that is stored itself, but whose larger StatefulSet is
refused: it has no groups.

python -m bench.reconcile [--shape SHAPE ...]

    create      a new LeaderWorkerSet: its revision is created, the leader StatefulSet applied
    edit        after a change of its image: the same
    unseen      after a change of its image while no manager ran: the same, without knowledge of the previous state
    first       no change, but no knowledge either: after a start of the manager
    instance    its objects came again, with the same content: another status, another resourceVersion
    again       no change

All are processor milliseconds, the best of six.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from bench.core.decisions import LARGEST
from bench.record import machine, report
from msgspec.structs import replace
from testkit import work
from tests import builders
from tests.decisions import decide
from tests.property.growth.shapes import SHAPES, LargeSet
from tests.property.growth.test_remembered import settle

from kuberuntime.objects.meta import JSON
from kuberuntime.plan import PutStatus
from leaderworkerset.core.leaderworkerset.decision import NOTHING_KNOWN, ObservedLeaderWorkerSet
from leaderworkerset.core.policies.policy import NO_SERVICE

SHAPES_TRIED: Final = ("long texts", "variables", "quantities", "volumes", "ports", "labels", "claims")
RUNS: Final = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    options = parser.parse_args()
    print(json.dumps(machine()), flush=True)
    for shape in options.shape or SHAPES_TRIED:
        measure(shape)


def measure(shape: str) -> None:
    """Report one shape."""
    world = stored(shape)
    alone = alone_stored(shape)
    settled = at_rest(world)
    unknown = arrived(replace(settled, known=NOTHING_KNOWN))
    edited = _copy(world.edited) | {"status": {}}
    report(
        "reconcile",
        shape=shape,
        count=world.n,
        bytes=largest_of(world),
        create_ms=milliseconds(partial(decide, new(world), builders.NOW)),
        edit_ms=milliseconds(partial(decide, replace(settled, leaderworkerset=edited), builders.NOW)),
        unseen_ms=milliseconds(partial(decide, replace(unknown, leaderworkerset=edited), builders.NOW)),
        first_ms=milliseconds(partial(decide, unknown, builders.NOW)),
        instance_ms=milliseconds(partial(decide, arrived(settled), builders.NOW)),
        again_ms=milliseconds(partial(decide, settled, builders.NOW)),
        refused_count=alone.n,
        refused_ms=milliseconds(partial(decide, new(alone), builders.NOW)),
    )


def stored(shape: str) -> LargeSet:
    """Return the world in which the largest object has the maximum size of an API server."""
    return _largest(shape, largest_of)


def alone_stored(shape: str) -> LargeSet:
    """Return the world whose LeaderWorkerSet has the maximum size of an API server. Others may exceed it."""
    return _largest(shape, lambda world: _bytes(world.posted))


def largest_of(world: LargeSet) -> int:
    """Return the bytes of the largest object of an idle world."""
    settled = at_rest(world)
    return max(map(_bytes, (settled.leaderworkerset, settled.leader_workload, *settled.revisions)))


def _largest(shape: str, size: Callable[[LargeSet], int]) -> LargeSet:
    """Return the largest world with a precision of about one percent. Sizes grow linearly, except for digits."""
    few, more = LargeSet(shape, 1000), LargeSet(shape, 4000)
    bytes_each = (size(more) - size(few)) / (more.n - few.n)
    largest = LargeSet(shape, few.n + int((LARGEST - size(few)) / bytes_each))
    while size(largest) > LARGEST:
        largest = LargeSet(shape, largest.n - largest.n // 200)
    return largest


def _bytes(obj: JSON) -> int:
    return len(msgspec.json.encode(obj))


def new(world: LargeSet) -> ObservedLeaderWorkerSet:
    """Return the observation of a new LeaderWorkerSet."""
    observed = replace(world.observed, keeper=None, revisions=(), groups={}, service=NO_SERVICE)
    return replace(observed, leaderworkerset=world.posted | {"status": {}})


def at_rest(world: LargeSet) -> ObservedLeaderWorkerSet:
    """Return the observation of an idle LeaderWorkerSet, and its cached state."""
    settled = settle(world)
    obj = next(action.object for action in decide(settled, builders.NOW).plan.actions if isinstance(action, PutStatus))
    observed = replace(settled, leaderworkerset=obj)
    assert not decide(observed, builders.NOW).plan
    return observed


def arrived(observed: ObservedLeaderWorkerSet) -> ObservedLeaderWorkerSet:
    """Return the observation with different instances of its objects."""
    return replace(
        observed,
        leaderworkerset=_copy(observed.leaderworkerset),
        keeper=_copy(observed.leader_workload),
        revisions=[_copy(revision) for revision in observed.revisions],
    )


def _copy(value: JSON) -> JSON:
    return msgspec.json.decode(msgspec.json.encode(value))


def milliseconds(call: Callable[[], object]) -> float:
    return round(1000 * work.seconds(call, RUNS), 1)


if __name__ == "__main__":
    main()
