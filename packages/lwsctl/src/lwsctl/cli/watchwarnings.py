"""Follows objects for a command: as for any program, and with warnings of the watches on standard error."""

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
    """Run informers, and yield once each has been filled."""
    levels = (informer.log_level for informer in informers if isinstance(informer, Keepalive))
    logging.configure_default(next(levels, "warning"))
    async with observed.following(*informers) as objects:
        yield objects


@overload
def present(informers: SetInformers) -> View: ...
@overload
def present(informers: DisaggregatedInformers) -> SetView: ...
def present(informers: OneSet) -> Shown:
    """Return the current view of an object that is followed; raise if it was deleted meanwhile."""
    view = informers.view()
    if view is None:
        raise CommandError(f"{informers.key.name} no longer exists")
    return view
