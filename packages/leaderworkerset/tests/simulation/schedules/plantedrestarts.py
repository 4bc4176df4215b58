"""Bugs about pods that restart all their containers in place, to be found: the tolerance and its duration."""

from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kuberuntime.objects import podstate
from leaderworkerset.capabilities.restartinplace import allcontainers


def tolerates_nothing() -> Any:
    """Recreate a group because a pod restarted all its containers in place, though its set tolerates that."""
    return patch.object(allcontainers, "tolerated", lambda annotations: None)


def waits_for_ever() -> Any:
    """Make a pod that is not ready again be late without end."""
    real = allcontainers.decide
    return patch.object(allcontainers, "decide", lambda *given: replace(real(*given), failure=None))


def never_sees_ready_pods() -> Any:
    """Go on counting the time of a pod that has been ready again for long."""
    return patch.object(allcontainers, "podstate", _Unready())


class _Unready:
    """The states of pods, of which none stays ready."""

    stays_ready = staticmethod(lambda pod: False)

    def __getattr__(self, name: str) -> Any:
        return getattr(podstate, name)
