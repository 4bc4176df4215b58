"""Computes the load of containers from two measurements of their usage.

Usage is read only on request. The load of a container is the mean since the oldest reading within `SPAN` that has it.
If no container has an earlier reading, the request waits for a second one; else new containers are omitted.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from kuberuntime.clock import Clock
from kuberuntime.objects.meta import UID
from localkube.kubelet.processes.runner import ProcessRunner, ResourceUsage
from localkube.podaccess import ContainerUsage, UsageReport

SPAN: Final = 20.0
"""The maximum interval of the mean, in seconds."""

SHORTEST: Final = 1.0
"""The seconds between the first two measurements. The kernel reports hundredths of a second."""

Running: TypeAlias = Callable[[], Mapping[int, tuple[UID, str]]]
"""Returns the running containers (pod, name) by the PID of their process."""


Key: TypeAlias = tuple[int, UID, str]
"""A container by the PID of its process. The pod and name distinguish containers with a reused PID."""


class UsageSample(NamedTuple):
    """The usage of containers at one time."""

    at: datetime
    used: Mapping[Key, ResourceUsage]


class ContainerStats:
    """Measures containers on request."""

    def __init__(self, runner: ProcessRunner, clock: Clock) -> None:
        self._runner = runner
        self._clock = clock
        self._readings: deque[UsageSample] = deque()
        self._lock = asyncio.Lock()

    async def measure(self, running: Running) -> UsageReport:
        """Return the current loads of containers."""
        async with self._lock:
            last = await self._read(running)
            while self._readings and not 0 <= _elapsed_seconds(self._readings[0], last) <= SPAN:
                self._readings.popleft()
            if last.used and not self._previous_samples(last):
                self._readings.append(last)
                await asyncio.sleep(SHORTEST)
                last = await self._read(running)
            earlier = self._previous_samples(last)
            self._readings.append(last)
            return _mean_usage(earlier, last)

    def _previous_samples(self, last: UsageSample) -> Mapping[Key, UsageSample]:
        """Return the latest measurement of each container that is old enough for a comparison."""
        old = [reading for reading in self._readings if _elapsed_seconds(reading, last) >= SHORTEST]
        oldest = ((key, next((reading for reading in old if key in reading.used), None)) for key in last.used)
        return {key: reading for key, reading in oldest if reading is not None}

    async def _read(self, running: Running) -> UsageSample:
        containers = running()
        used = await self._runner.read_usage(containers)
        return UsageSample(self._clock.now(), {(pid, *containers[pid]): usage for pid, usage in used.items()})


def _elapsed_seconds(first: UsageSample, last: UsageSample) -> float:
    return (last.at - first.at).total_seconds()


def _mean_usage(earlier: Mapping[Key, UsageSample], last: UsageSample) -> UsageReport:
    loads: dict[UID, dict[str, ContainerUsage]] = {}
    for key, reading in earlier.items():
        _, uid, name = key
        used = last.used[key]
        cores = max(used.seconds - reading.used[key].seconds, 0.0) / _elapsed_seconds(reading, last)
        loads.setdefault(uid, {})[name] = ContainerUsage(cores, used.memory)
    longest = max((_elapsed_seconds(reading, last) for reading in earlier.values()), default=SHORTEST)
    return UsageReport(last.at, longest, loads)
