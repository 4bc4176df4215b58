"""The interface for controller metrics. The default implementation does not count anything.

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
        """Add a collector for the metrics library."""

    def unregister(self, collector: Any) -> None:
        """Remove a collector."""


class KindMetrics(Protocol):
    """The metrics of one kind."""

    def recorded(self, event: Event) -> None:
        """Count an event of this kind that is about to be written."""

    def following(self, caches: Caches) -> AbstractContextManager[None]:
        """Report the content of these caches, and count their changes, while the context is active."""


class Instruments:
    """The instruments of a process for every controller, and the metrics of its kinds.

    If there is no meter, nothing is counted.
    """

    def __init__(self, meter: Meter | None = None, kinds: Iterable[KindMetrics] = ()) -> None:
        self._meter = meter
        self._kinds = tuple(kinds)

    def controller(self, name: str) -> Observer:
        """Return the observer for one controller."""
        return SILENCE if self._meter is None else self._meter.controller(name)

    def recorded(self, event: Event) -> None:
        """Pass an event to the metrics of every kind."""
        for kind in self._kinds:
            kind.recorded(event)

    @contextmanager
    def following(self, caches: Caches) -> Iterator[None]:
        """Report the content of these caches to the metrics of every kind while the context is active."""
        with ExitStack() as stack:
            for kind in self._kinds:
                stack.enter_context(kind.following(caches))
            yield


NO_INSTRUMENTS: Final = Instruments()
