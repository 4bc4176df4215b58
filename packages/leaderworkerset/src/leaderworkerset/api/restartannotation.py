"""Defines the pod annotation for in-place restarts.

Its value is `COUNT`, or `COUNT=SINCE` until the pod is ready. The functions are pure.

Other users may be allowed to write pods, so an unreadable annotation counts as absent.
"""

from datetime import datetime
from typing import Final, NamedTuple

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels


class InPlaceRestarts(NamedTuple):
    """The number of in-place restarts of all containers, and the last start time (None if the pod is ready)."""

    restarts: int = 0
    started_at: datetime | None = None

    def __str__(self) -> str:
        return str(self.restarts) + (f"={timestamps.render(self.started_at)}" if self.started_at else "")


NOTHING: Final = InPlaceRestarts()


def read(pod: JSONObject) -> InPlaceRestarts:
    """Return the in-place restarts in the annotation of a pod.

    >>> str(read({"metadata": {"annotations": {labels.RESTARTED_IN_PLACE: "2=2026-11-25T12:00:00Z"}}}))
    '2=2026-11-25T12:00:00Z'
    >>> read({"metadata": {"annotations": {labels.RESTARTED_IN_PLACE: "often"}}}) == NOTHING
    True
    """
    count, _, since = meta.annotations(pod).get(labels.RESTARTED_IN_PLACE, "").partition("=")
    restarts = decimals.natural(count)
    return NOTHING if restarts is None else InPlaceRestarts(restarts, timestamps.read(since))
