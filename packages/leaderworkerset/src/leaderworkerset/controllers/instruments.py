"""Defines the interface for controller metrics. The default implementation does not record any metrics.

Queues, events and caches report their values through it, so that they do not import a metrics library.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, Protocol

from kuberuntime.controller.workqueue import SILENCE, Observer
from kuberuntime.plan import Event
from leaderworkerset.controllers.caches import Caches


class Meter(Protocol):
    """The metrics of a process (`kuberuntime/serving/metrics.py`).

    The metrics library is imported only where metrics are served.
    """

    def controller(self, name: str) -> Observer:
        """Return the observer for one controller."""

    def register(self, collector: Any) -> None:
        """Register a metrics collector."""

    def unregister(self, collector: Any) -> None:
        """Unregister a metrics collector."""


class KindMetrics(Protocol):
    """The metrics of one kind."""

    def count_event(self, event: Event) -> None:
        """Count an event of this kind before it is written."""

    def export_metrics(self, caches: Caches) -> AbstractContextManager[None]:
        """Export metrics about the content and changes of these caches while the context is active."""


class Instruments:
    """The metrics of a process for all controllers and kinds.

    If there is no meter, nothing is counted.
    """

    def __init__(self, meter: Meter | None = None, kinds: Iterable[KindMetrics] = ()) -> None:
        self._meter = meter
        self._kinds = tuple(kinds)

    def controller(self, name: str) -> Observer:
        """Return the observer for one controller."""
        return SILENCE if self._meter is None else self._meter.controller(name)

    def count_event(self, event: Event) -> None:
        """Pass an event to the metrics of all kinds."""
        for kind in self._kinds:
            kind.count_event(event)

    @contextmanager
    def export_metrics(self, caches: Caches) -> Iterator[None]:
        """Export metrics of all kinds about the content of these caches while the context is active."""
        with ExitStack() as stack:
            for kind in self._kinds:
                stack.enter_context(kind.export_metrics(caches))
            yield


NO_INSTRUMENTS: Final = Instruments()
