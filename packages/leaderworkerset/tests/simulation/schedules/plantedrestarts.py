"""Bugs of pods that restart all their containers in place: the tolerance and its duration."""

from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kuberuntime.objects import podstate
from leaderworkerset.capabilities.restartinplace import allcontainers


def waits_for_ever() -> Any:
    """Never report a pod that does not become ready again as late."""
    real = allcontainers.decide
    return patch.object(allcontainers, "decide", lambda *given: replace(real(*given), failure=None))


def never_sees_ready_pods() -> Any:
    """Continue to count the time of a pod that has long been ready again."""
    return patch.object(allcontainers, "podstate", _Unready())


class _Unready:
    """The states of pods, of which none stays ready."""

    stays_ready = staticmethod(lambda pod: False)

    def __getattr__(self, name: str) -> Any:
        return getattr(podstate, name)
