"""How long one reconciliation of a LeaderWorkerSet takes that is as large as etcd takes.

python -m bench.reconcile [--shape SHAPE ...]

edit     its image was changed: a revision is made, the leader StatefulSet applied
first    nothing changed, but nothing is known of it either: after a start of the manager
instance its objects came anew, with the same content: another status, another resourceVersion
again    nothing came
All are processor milliseconds, the best of six.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec
from bench.decisions import LARGEST, of_size
from bench.record import machine, report
from tests import builders
from tests.property.growth import work
from tests.property.growth.shapes import SHAPES
from tests.property.growth.test_settled import settle

from kuberuntime.objects.meta import JSON
from leaderworkerset.core.leaderworkerset.reconcile import ObservedLeaderWorkerSet, decide

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
    world = of_size(shape, LARGEST)
    settled = settle(world)
    report(
        "reconcile",
        shape=shape,
        count=world.n,
        bytes=len(json.dumps(world.posted)),
        edit_ms=milliseconds(partial(decide, replace(settled, leaderworkerset=world.edited), builders.NOW)),
        first_ms=milliseconds(partial(decide, replace(settled, settled=None), builders.NOW)),
        instance_ms=milliseconds(partial(decide, arrived(settled), builders.NOW)),
        again_ms=milliseconds(partial(decide, settled, builders.NOW)),
    )


def arrived(observed: ObservedLeaderWorkerSet) -> ObservedLeaderWorkerSet:
    """Return the observation with other instances of its objects."""
    return replace(
        observed,
        leaderworkerset=_copy(observed.leaderworkerset),
        leader_statefulset=_copy(observed.leader_statefulset),
    )


def _copy(value: JSON) -> JSON:
    return msgspec.json.decode(msgspec.json.encode(value))


def milliseconds(call: Callable[[], object]) -> float:
    return round(1000 * work.seconds(call, RUNS), 1)


if __name__ == "__main__":
    main()
