"""What the controllers tell of themselves, for whoever counts it; the default counts nothing.

The seam keeps metrics out of the controllers: they pass through it what goes through their edges anyway (queues, events,
informers), and import no metrics library.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

from kuberuntime.controller.observer import SILENCE, Observer
from kuberuntime.plan import Event
from leaderworkerset.controllers.selection import Informers


class Instruments(Protocol):
    """Counts what the controllers of one process do."""

    def controller(self, name: str) -> Observer:
        """Return the observer of one controller."""
        ...

    def recorded(self, event: Event) -> None:
        """Note an event that is about to be written."""
        ...

    def following(self, informers: Informers) -> AbstractContextManager[None]:
        """Look at these informers until the context is left."""
        ...


class NoInstruments:
    """Counts nothing."""

    def controller(self, name: str) -> Observer:  # noqa: ARG002 - the seam passes it
        """Return an observer that tells nobody."""
        return SILENCE

    def recorded(self, event: Event) -> None:
        """Ignore it."""

    def following(self, informers: Informers) -> AbstractContextManager[None]:  # noqa: ARG002 - the seam passes it
        """Look at nothing."""
        return nullcontext()


NO_INSTRUMENTS: Final = NoInstruments()
