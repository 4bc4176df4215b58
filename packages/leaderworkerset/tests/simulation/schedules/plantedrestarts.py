"""Defines bugs of pods that restart all their containers in place, for the tolerance and its duration."""

from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kuberuntime.objects import podstate
from leaderworkerset.capabilities.restartinplace import allcontainers


def waits_for_ever() -> Any:
    """Never report a pod as late if it does not become ready after a restart."""
    real = allcontainers.decide
    return patch.object(allcontainers, "decide", lambda *given: replace(real(*given), failure=None))


def never_sees_ready_pods() -> Any:
    """Continue to measure the restart time of a pod that has been ready for a long time."""
    return patch.object(allcontainers, "podstate", _Unready())


class _Unready:
    """The states of pods that never remain ready."""

    stays_ready = staticmethod(lambda pod: False)

    def __getattr__(self, name: str) -> Any:
        return getattr(podstate, name)
