"""The load of containers, computed from two readings of their usage.

Usage is read only on request. A frequent client gets the mean since its previous request, or over `SPAN`. The first
request waits for a second reading.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from kuberuntime.clock import Clock
from kuberuntime.objects.meta import UID
from localkube.kubelet.processes.runner import ProcessRunner, Used
from localkube.podaccess import Load, Measured

SPAN: Final = 20.0
"""The maximum seconds over which the mean is computed."""

SHORTEST: Final = 1.0
"""Seconds between the two readings of a first request: the kernel counts in hundredths."""

Running: TypeAlias = Callable[[], Mapping[int, tuple[UID, str]]]
"""Returns the running containers (pod, name) by the PID of their process."""


class Reading(NamedTuple):
    """The usage of containers at one time. Pod and name distinguish containers with a reused PID."""

    at: datetime
    used: Mapping[tuple[int, UID, str], Used]


class Meter:
    """Measures containers on request."""

    def __init__(self, runner: ProcessRunner, clock: Clock) -> None:
        self._runner = runner
        self._clock = clock
        self._readings: deque[Reading] = deque()
        self._turn = asyncio.Lock()

    async def measure(self, running: Running) -> Measured:
        """Return the loads of containers up to now."""
        async with self._turn:
            last = await self._read(running)
            while self._readings and not 0 <= _seconds(self._readings[0], last) <= SPAN:
                self._readings.popleft()
            if not self._readings or _seconds(self._readings[0], last) < SHORTEST:
                self._readings.append(last)
                await asyncio.sleep(SHORTEST)
                last = await self._read(running)
            first = self._readings[0]
            self._readings.append(last)
            return _between(first, last)

    async def _read(self, running: Running) -> Reading:
        containers = running()
        used = await self._runner.used(containers)
        return Reading(self._clock.now(), {(pid, *containers[pid]): usage for pid, usage in used.items()})


def _seconds(first: Reading, last: Reading) -> float:
    return (last.at - first.at).total_seconds()


def _between(first: Reading, last: Reading) -> Measured:
    seconds = max(_seconds(first, last), SHORTEST)
    loads: dict[UID, dict[str, Load]] = {}
    for key, used in last.used.items():
        before = first.used.get(key)
        if before is not None:
            _, uid, name = key
            cores = max(used.seconds - before.seconds, 0.0) / seconds
            loads.setdefault(uid, {})[name] = Load(cores, used.memory)
    return Measured(last.at, seconds, loads)
