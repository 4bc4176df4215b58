"""Follows objects for a command: as for any program, and with warnings of the watches on standard error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from leaderworkerset.cli import logging
from leaderworkerset.cli.cluster.lifeline import Lifeline
from leaderworkerset.observation import following as observed
from leaderworkerset.observation.following import Followed, Following


@asynccontextmanager
async def following(*informers: Followed) -> AsyncIterator[Following]:
    """Run informers, and yield once each has been filled."""
    levels = (informer.log_level for informer in informers if isinstance(informer, Lifeline))
    logging.configure_default(next(levels, "warning"))
    async with observed.following(*informers) as objects:
        yield objects
