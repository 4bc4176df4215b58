"""The kinds that the manager serves: a new one is added here."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final, TypeAlias

from leaderworkerset.core.gang.gangs import Gangs
from leaderworkerset.core.policies.gang import NO_GANG, Gang
from leaderworkerset.core.restarts.settings import DEFAULTS, RestartSettings
from leaderworkerset.kinds.disaggregatedset import DISAGGREGATED_SET, ROLE_SCALER
from leaderworkerset.kinds.leaderworkerset import leaderworkerset
from leaderworkerset.kinds.pod import pod
from leaderworkerset.kinds.registry import Registry

Served: TypeAlias = Callable[[], Collection[str]]
"""Returns the names of the gang schedulers whose kinds the API server serves now."""


def nothing() -> Collection[str]:
    """Return no names: the default for `auto` without detection."""
    return ()


def managed(provider: str = "", served: Served = nothing, restarts: RestartSettings = DEFAULTS) -> Registry:
    """Return the kinds with this provider of gang scheduling: a name, `auto`, or none; `auto` chooses among `served`.

    `restarts` is how groups that fail are recreated.
    """
    if not provider:
        return _registry(NO_GANG, lambda: NO_GANG, restarts)
    gangs = Gangs(default=provider)
    return _registry(gangs, lambda: replace(gangs, served=served()), restarts)


def _registry(gang: Gang, ask: Callable[[], Gang], restarts: RestartSettings) -> Registry:
    return Registry((leaderworkerset(gang, ask), pod(gang, ask, restarts), DISAGGREGATED_SET, ROLE_SCALER))


MANAGED: Final = managed()
"""The kinds of a manager without gang scheduling."""
