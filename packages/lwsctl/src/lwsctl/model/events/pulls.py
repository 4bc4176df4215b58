"""Finds image pulls in progress, and the last pull duration of each image, from kubelet events. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import duration
from lwsctl.model.events.eventrecord import WarningEvent

BEGUN: Final = re.compile(r'Pulling image "(?P<image>[^"]+)"')
PULLED: Final = re.compile(r'Successfully pulled image "(?P<image>[^"]+)" in (?P<took>[0-9.a-zµ]+)')
OVER: Final = re.compile(r'(?:Successfully pulled|Failed to pull|Back-off pulling) image "(?P<image>[^"]+)"')


class Pull(Struct, frozen=True):
    """The start of an image pull, and the duration of the last pull on any node or None."""

    image: str
    since: datetime
    last_took: timedelta | None = None


def current_pull(events: Iterable[WarningEvent]) -> Pull | None:
    """Return the oldest image pull of a pod that is in progress, based on the events of the pod."""
    begun: dict[str, datetime] = {}
    over: dict[str, datetime] = {}
    for event in events:
        for pattern, times in ((BEGUN, begun), (OVER, over)):
            if match := pattern.search(event.message):
                times[match["image"]] = max(event.last, times.get(match["image"], event.last))
    pulls = [Pull(image, since) for image, since in begun.items() if image not in over or over[image] < since]
    return min(pulls, key=lambda pull: pull.since, default=None)


def last_duration(image: str, events: Iterable[WarningEvent]) -> timedelta | None:
    """Return the duration of the last recorded pull of an image on any node, or None if there is none."""
    newest = max(
        (event for event in events if (match := PULLED.search(event.message)) and match["image"] == image),
        key=lambda event: event.last,
        default=None,
    )
    match = PULLED.search(newest.message) if newest else None
    try:
        return timedelta(seconds=float(duration.parse(match["took"]))) if match else None
    except ValueError:
        return None


def describe_pull(pull: Pull, node: str, now: datetime) -> str:
    """Describe an image pull with the image, its duration, and the duration of the last pull."""
    before = f"; the last pull took {duration.human(pull.last_took)}" if pull.last_took is not None else ""
    return f"pulling image {pull.image} to node {node} for {duration.human(now - pull.since)}{before}"
