"""Draws a chart of the ready, starting and old groups of a set over time during a rollout. Pure.

The times are based on the pods. A group is at the latest revision since the creation of its leader, and ready since
its last rank became ready. Recreated groups are counted from their recreation.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import timestamps
from lwsctl.dashboard.markup import Safe, tag
from lwsctl.model.groups import Group
from lwsctl.views.wording import duration, format_count

WIDTH: Final = 60
"""The number of time steps in a chart. The number is small, because the chart is resent when a group changes."""

LAST: Final = 3
"""The number of time steps after the last change, so that the final state is visible."""

HEIGHT: Final = 100
LEGEND: Final = {"done": "ready", "begun": "starting", "older": "older"}
"""The labels of the areas by class."""


class UpdateTimes(Struct, frozen=True):
    """The times at which groups were updated and became ready, and the number of groups."""

    updated_at: Sequence[datetime]
    ready_at: Sequence[datetime]
    groups: int

    @property
    def first_update(self) -> datetime:
        """Return the time at which the first group was updated."""
        return min(self.updated_at)

    @property
    def last_change(self) -> datetime:
        """Return the time of the last change."""
        return max((*self.updated_at, *self.ready_at))


def update_times(own: Sequence[Group], groups: int) -> UpdateTimes | None:
    """Return the updates of `desired` groups to the latest revision, or None if there are none."""
    started = [moment for group in own if (moment := _creation_time(group)) is not None]
    ready = [moment for group in own if (moment := group.ready_since) is not None]
    return UpdateTimes(sorted(started), sorted(ready), groups) if started else None


def chart(rollout: UpdateTimes) -> Safe:
    """Return the chart, with a description for screen readers."""
    length = rollout.last_change - rollout.first_update
    words = (
        f"of {format_count(rollout.groups, 'group')}, {len(rollout.updated_at)} were updated to the latest revision and {len(rollout.ready_at)} are ready, from "
        f"{rollout.first_update:%H:%M:%S} to {rollout.last_change:%H:%M:%S} UTC"
    )
    drawing = tag(
        "svg",
        tag("title", words),
        tag("rect", class_="older", width=WIDTH, height=HEIGHT),
        tag("path", class_="begun", d=_area_outline(rollout, rollout.updated_at)),
        tag("path", class_="done", d=_area_outline(rollout, rollout.ready_at)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        class_="course",
    )
    keys = [tag("span", tag("i", class_=name), f" {word}") for name, word in LEGEND.items()]
    scale = tag(
        "p",
        tag("span", f"{rollout.first_update:%H:%M:%S}"),
        tag("span", f"{duration(length)}: ", keys),
        tag("span", f"{rollout.last_change:%H:%M:%S} UTC"),
        class_="scale",
    )
    return tag("figure", drawing, scale)


def _area_outline(rollout: UpdateTimes, moments: Sequence[datetime]) -> str:
    """Return the outline of the area for the number of groups in a state at each time step.

    >>> start = datetime(2026, 1, 1)
    >>> _area_outline(UpdateTimes([start, start + timedelta(seconds=60)], [], 2), [start, start + timedelta(seconds=60)])
    'M0 100V50H57V0H60V100Z'
    """
    length = max(rollout.last_change - rollout.first_update, timedelta(seconds=1))
    heights: dict[int, int] = {}
    for count, moment in enumerate(moments, start=1):
        heights[round((WIDTH - LAST) * ((moment - rollout.first_update) / length))] = HEIGHT - HEIGHT * count // max(
            rollout.groups, 1
        )
    steps = "".join(f"H{at}V{height}" if at else f"V{height}" for at, height in heights.items())
    return f"M0 {HEIGHT}{steps}H{WIDTH}V{HEIGHT}Z"


def _creation_time(group: Group) -> datetime | None:
    return timestamps.read(group.leader.created) if group.leader is not None else None
