"""The randomness seam: jitter and identities come from one source, which a simulation replaces by a seeded one.

The source belongs to the context, as the clock belongs to the event loop: tasks inherit the source of the task that
started them, so each actor of a simulation can have its own. Secrets are not generated here: they must never be
seeded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random, SystemRandom
from typing import Final
from uuid import UUID

_SOURCE: Final[ContextVar[Random]] = ContextVar("randomness", default=SystemRandom())  # noqa: B039 - it has no state


def source() -> Random:
    """Return the source of this context: the system's, unless one was seeded."""
    return _SOURCE.get()


def jitter() -> float:
    """Return a number from 0 up to, but not including, 1."""
    return source().random()


def uid() -> str:
    """Return a random UUID."""
    return str(UUID(int=source().getrandbits(128), version=4))


@contextmanager
def seeded(random: Random) -> Iterator[None]:
    """Use this source inside the context, and in the tasks that it starts."""
    token = _SOURCE.set(random)
    try:
        yield
    finally:
        _SOURCE.reset(token)
