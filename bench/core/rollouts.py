"""Measures the decisions of a rollout by group count, with a model of the StatefulSet controller.

    python -m bench.core rollouts [--most 10000]

One, ten, … groups are rolled a quarter at a time. Groups get ready wave by wave (`waves`), or one after the other, each
with a decision of its own (`singly`, to 1,000 groups: the model itself takes long). In waves, the time per group should
be constant.
"""

import argparse
import json
import time

from bench.record import machine, report
from tests.property.test_rollout import ModeledRollout, started

from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import States
from leaderworkerset.core.leaderworkerset.outdatedleaders import Current
from leaderworkerset.core.leaderworkerset.rollingupdate import next_step

MOST_SINGLY = 1000


def step(rollout: ModeledRollout) -> float:
    """Perform a step. Return its CPU time in seconds."""
    states = States.of(dict(enumerate(rollout.groups)))
    start = time.process_time()
    decision = next_step(rollout.limits, rollout.current, states, is_new_revision=False)
    seconds = time.process_time() - start
    rollout.current = Current(decision.replicas, decision.partition, str(rollout.limits.replicas))
    return seconds


def roll(count: int, *, singly: bool) -> None:
    """Roll out `groups` groups, and report the result."""
    rollout = started(Budget(replicas=count, partition=0, unavailable=max(count // 4, 1), surge=0))
    steps, seconds = 0, 0.0
    while not rollout.is_done:
        seconds += step(rollout)
        steps += 1
        rollout.roll()
        for index in [index for index, group in enumerate(rollout.groups) if not group.is_ready][
            : 1 if singly else None
        ]:
            rollout.make_ready(index)
    each = 1e6 * seconds / count
    report(
        "rollout, singly" if singly else "rollout, waves",
        groups=count,
        steps=steps,
        microseconds_per_group=round(each, 2),
    )


def main() -> None:
    """Measure, and print raw data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10_000)
    options = parser.parse_args()
    print(json.dumps(machine()), flush=True)
    for singly in (False, True):
        count = 1
        while count <= min(options.most, MOST_SINGLY if singly else options.most):
            roll(count, singly=singly)
            count *= 10
