"""The interface for metrics of controllers; the default counts nothing.

It keeps metrics out of the controllers: queues, events and caches pass it their values, and import no metrics library.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, Protocol

from kuberuntime.controller.workqueue import SILENCE, Observer
from kuberuntime.plan import Event
from leaderworkerset.controllers.caches import Caches


class Meter(Protocol):
    """The metrics of a process (`kuberuntime/serving/metrics.py`).

    Their library is imported only where they are served.
    """

    def controller(self, name: str) -> Observer:
        """Return the observer of one controller."""

    def register(self, collector: Any) -> None:
        """Add a collector of the metrics library."""

    def unregister(self, collector: Any) -> None:
        """Remove a collector."""


class KindMetrics(Protocol):
    """The metrics of one kind."""

    def recorded(self, event: Event) -> None:
        """Count an event of this kind that is about to be written."""

    def following(self, caches: Caches) -> AbstractContextManager[None]:
        """Report the content of these caches, and count their changes, inside the context."""


class Instruments:
    """The instruments of a process: for every controller, and the metrics of its kinds.

    Without a meter, nothing is counted.
    """

    def __init__(self, meter: Meter | None = None, kinds: Iterable[KindMetrics] = ()) -> None:
        self._meter = meter
        self._kinds = tuple(kinds)

    def controller(self, name: str) -> Observer:
        """Return the observer of one controller."""
        return SILENCE if self._meter is None else self._meter.controller(name)

    def recorded(self, event: Event) -> None:
        """Pass an event to the metrics of every kind."""
        for kind in self._kinds:
            kind.recorded(event)

    @contextmanager
    def following(self, caches: Caches) -> Iterator[None]:
        """Let the metrics of every kind follow the caches inside the context."""
        with ExitStack() as stack:
            for kind in self._kinds:
                stack.enter_context(kind.following(caches))
            yield


NO_INSTRUMENTS: Final = Instruments()
