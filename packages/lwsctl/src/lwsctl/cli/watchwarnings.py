"""Watches objects for a command, and prints warnings about watches on stderr."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import overload

from lwsctl.cli import logging
from lwsctl.cli.cluster.keepalive import Keepalive
from lwsctl.cli.errors import CommandError
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import conditionwatch as observed
from lwsctl.observation.conditionwatch import ChangeSource, ConditionWatch, DisaggregatedInformers, OneSet, SetInformers


@asynccontextmanager
async def following(*informers: ChangeSource) -> AsyncIterator[ConditionWatch]:
    """Run informers, and yield when all of them are synchronized."""
    levels = (informer.log_level for informer in informers if isinstance(informer, Keepalive))
    logging.configure_default(next(levels, "warning"))
    async with observed.watch_conditions(*informers) as objects:
        yield objects


@overload
def present(informers: SetInformers) -> View: ...
@overload
def present(informers: DisaggregatedInformers) -> SetView: ...
def present(informers: OneSet) -> Shown:
    """Return the current view of a watched object. Raise an error if the object was deleted."""
    view = informers.view()
    if view is None:
        raise CommandError(f"{informers.key.name} no longer exists")
    return view
