"""Provides the random source for jitter and identities. A simulation replaces it with a seeded source.

The source is a context variable. Tasks inherit the source of the task that started them, so each actor in a simulation
can have its own source. Do not use this module for secrets, which must never be seeded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random, SystemRandom
from typing import Final
from uuid import UUID

_SOURCE: Final[ContextVar[Random]] = ContextVar("randomness", default=SystemRandom())  # noqa: B039 - it has no state


def source() -> Random:
    """Return the source of this context. The default is the system's source."""
    return _SOURCE.get()


def jitter() -> float:
    """Return a number between 0 (inclusive) and 1 (exclusive)."""
    return source().random()


def uid() -> str:
    """Return a random UUID."""
    return str(UUID(int=source().getrandbits(128), version=4))


@contextmanager
def use_random_source(random: Random) -> Iterator[None]:
    """Use this source in the context and in the tasks that are started in it."""
    token = _SOURCE.set(random)
    try:
        yield
    finally:
        _SOURCE.reset(token)
