"""Counts events of an event loop, for metrics whose series change with each request or reconciliation.

Counters and histograms of prometheus_client acquire a lock and call several functions for each event. The collectors
in this module store plain numbers, and build a metric only during a scrape.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Labels: TypeAlias = tuple[str, ...]
"""The label values of one series, in the order of the label names."""


class Tally(Collector):
    """A counter. To count an event, increment `counts` for its labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self.counts: Counter[Labels] = Counter()
        self._family = partial(CounterMetricFamily, name, documentation, labels=labels)
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Return the current metric."""
        family = self._family()
        for labels, count in self.counts.items():
            family.add_metric(labels, count)
        return (family,)


class Durations:
    """One series of a histogram of durations in seconds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Record a duration."""
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds


class DurationHistogram(Collector):
    """A histogram of durations in seconds."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        registry: CollectorRegistry,
        *,
        bounds: Sequence[float],
    ) -> None:
        self._family = partial(HistogramMetricFamily, name, documentation, labels=labels)
        self._bounds = bounds
        self._series: dict[Labels, Durations] = {}
        registry.register(self)

    def series(self, *labels: str) -> Durations:
        """Return the series with these label values."""
        return self._series.setdefault(labels, Durations(self._bounds))

    def collect(self) -> Iterable[Metric]:
        """Return the current metric."""
        family = self._family()
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        for labels, series in self._series.items():
            family.add_metric(labels, list(zip(names, accumulate(series.counts), strict=True)), series.total)
        return (family,)
