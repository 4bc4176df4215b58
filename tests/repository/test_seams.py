"""Tests that time and randomness come only from `kuberuntime.clock` and `kuberuntime.randomness`.

Timers (`asyncio.sleep`, `call_later`, `loop.time`) belong to the event loop: a virtual loop moves them.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

import pytest
from testkit import repository

from kuberuntime import randomness
from localkube.apiserver.model.identities import Identities

MODULES: Final = frozenset({"random", "secrets", "time", "uuid"})
"""Modules for time and randomness. An import counts as a use."""

CALLS: Final = frozenset(
    {
        "datetime.now", "datetime.today", "datetime.utcnow", "date.today", "datetime.datetime.now", "os.urandom",
        "datetime.datetime.utcnow", "datetime.date.today",
    }
)  # fmt: skip

WORDS: Final = re.compile(
    rf"^\s*(import|from)\b.*\b({'|'.join(sorted(MODULES))})\b|urandom|{'|'.join(sorted(CALLS))}", re.MULTILINE
)
"""Sources without these words are not parsed, because parsing all sources is slow."""

TYPES: Final = frozenset({"random.Random", "uuid.UUID"})
"""Types that receive the seed and the bits, and have no source of randomness."""

DIRECT: Final = {
    "localkube/kubelet/logfiles/logreader.py": "measures the processor time that followers of a log take from its writer",
    "localkube/kubelet/processes/waitreasons.py": "waits between two looks at the CPU time of a real process",
    "kuberuntime/clock.py": "the seam of time",
    "kuberuntime/randomness.py": "the seam of chance",
    "lwsctl/dashboard/webserver.py": "makes tokens: secrets are never seeded",
    "leaderworkerset/rendezvous/__main__.py": "runs in pods of users, and imports nothing of ours",
    "localkube/clusteridentity.py": "makes a token: secrets are never seeded",
    "localkube/kubelet/sandbox/launcherprocess.py": "makes a certificate of real processes, valid now",
}

SYSTEM_CLOCK: Final = {
    "kuberuntime/access/execcredentials.py": "the default of a clock that is passed",
    "kuberuntime/clock.py": "defines it",
    "lwsctl/cli/local/localcluster.py": "composes a cluster",
    "lwsctl/cli/sets/causes.py": "measures how long a set has been stuck for people",
    "lwsctl/cli/commands/explain.py": "prints ages for people",
    "lwsctl/cli/commands/get.py": "prints ages for people",
    "lwsctl/cli/commands/wait.py": "measures how long a condition has held for people",
    "lwsctl/cli/commands/local/run.py": "measures how long a set has been ready for people",
    "lwsctl/cli/commands/local/clusters.py": "prints ages for people",
    "lwsctl/cli/commands/rollout/rolloutstatus.py": "estimates for people how long a rollout takes",
    "lwsctl/cli/commands/rollout/rollouthistory.py": "prints ages for people",
    "lwsctl/cli/commands/rollout/restart.py": "stamps the annotation of a restart",
    "lwsctl/cli/commands/inspect/describe.py": "prints ages for people",
    "lwsctl/cli/commands/inspect/doctor.py": "compares the ends of certificates and leases for people",
    "lwsctl/cli/commands/inspect/events.py": "prints ages for people",
    "lwsctl/cli/commands/inspect/history.py": "prints ages for people",
    "lwsctl/cli/commands/inspect/top.py": "prints how long GPUs have been idle",
    "lwsctl/cli/commands/inspect/tree.py": "prints ages for people",
    "lwsctl/dashboard/livemodel.py": "compares the ages of objects for people",
    "lwsctl/observation/lists.py": "compares the ages of events for people",
    "lwsctl/observation/conditionwatch.py": "compares the ages of events for people",
    "lwsctl/cli/storms/stormrunner.py": "compares when groups failed with the beginning of a storm",
    "lwsctl/cli/views/live.py": "prints ages for people",
    "lwsctl/client/asyncclient.py": "measures how long a set has been ready, and prints ages for people",
    "lwsctl/observation/diagnosisinput.py": "compares the ages of objects for people",
    "lwsctl/observation/setdiagnoses.py": "likewise, of many LeaderWorkerSets or DisaggregatedSets",
    "leaderworkerset/manager/managerlog.py": "stamps lines of the log",
    "leaderworkerset/manager/managerprocess.py": "composes the manager",
    "leaderworkerset/operator/operatorprocess.py": "composes the operator",
    "localkube/cluster.py": "composes a cluster",
    "localkube/kubelet/sandbox/sandboxrunner.py": "runs real processes",
}


def direct_uses(source: str) -> list[str]:
    """Return the direct uses of time and randomness in a module."""
    if not WORDS.search(source):
        return []
    return sorted({name for node in ast.walk(ast.parse(source)) for name in _names(node)})


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (one.name for one in names if one.name in MODULES)
        case ast.ImportFrom(module=str(module), names=names, level=0) if module in MODULES:
            yield from (f"{module}.{one.name}" for one in names if f"{module}.{one.name}" not in TYPES)
        case ast.Call(func=ast.Attribute() as called) if ast.unparse(called) in CALLS:
            yield ast.unparse(called)
        case ast.ImportFrom(module="os", names=names):
            yield from (f"os.{one.name}" for one in names if one.name == "urandom")
        case _:
            return


@cache
def modules() -> dict[str, str]:
    return {name: path.read_text() for name, path in repository.modules()}


@pytest.mark.slow
def test_only_listed_modules_read_system_time_and_randomness() -> None:
    found = {name: uses for name, source in modules().items() if (uses := direct_uses(source))}
    assert found.keys() == DIRECT.keys(), {name: found.get(name) for name in found.keys() ^ DIRECT.keys()}


def test_only_listed_modules_use_the_system_clock() -> None:
    found = {name for name, source in modules().items() if "SystemClock" in source}
    assert found == SYSTEM_CLOCK.keys()


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        ("import time\ntime.time()", ["time"]),
        ("from time import monotonic", ["time.monotonic"]),
        ("from datetime import datetime\ndatetime.now()", ["datetime.now"]),
        ("import random", ["random"]),
        ("from random import Random", []),
        ("from uuid import uuid4", ["uuid.uuid4"]),
        ("import os\nos.urandom(3)", ["os.urandom"]),
        ("from os import urandom", ["os.urandom"]),
        ("import asyncio\nasyncio.get_running_loop().time()", []),
    ],
)
def test_direct_use_is_detected(source: str, uses: list[str]) -> None:
    assert direct_uses(source) == uses


def test_seed_repeats_jitter_and_identities() -> None:
    def draw() -> tuple[float, str, str]:
        with randomness.use_random_source(Random(3)):
            return randomness.jitter(), randomness.uid(), Identities().uid()

    assert draw() == draw()


def test_identities_differ_without_a_seed() -> None:
    assert randomness.uid() != randomness.uid()
    assert 0 <= randomness.jitter() < 1
