"""Describes the progress of a group, with a bar and the remaining time, or with the rank that may hang. Pure."""

from datetime import datetime
from typing import Final

from leaderworkerset.api.progressannotations import Hang, Progress
from lwsctl.model.groups import Group
from lwsctl.views import devices
from lwsctl.views.wording import duration

BAR: Final = 20
"""The width of a bar in characters."""

MOST_METRICS: Final = 3
"""The maximum number of metrics to show. The output of `-o json` includes all metrics."""


def progress_sentence(group: Group, now: datetime) -> str:
    """Return a line with the progress of a group and its first rank that has idle GPUs.

    Return an empty string if nothing is known.
    """
    if group.hang is not None:
        text = silence_text(group.hang, now)
    elif group.progress is not None and group.end is None:
        text = progress_steps(group.progress, now)
    else:
        return ""
    idle = ((rank.pod, devices.idle_text(rank.object, now)) for rank in group.ranks)
    return text + next((f"; {pod}: {words}" for pod, words in idle if words), "")


def progress_steps(progress: Progress, now: datetime) -> str:
    """Return a bar and the progress of a workload.

    >>> progress_steps(Progress(step=120, total=480, metrics=(("loss", "2.1"),)), datetime.now())
    '[#####---------------] step 120 of 480 (25 %), loss 2.1'
    """
    share, left = progress.fraction, progress.remaining_time(now)
    parts = [f"step {progress.step}"]
    if share is not None:
        filled = int(share * BAR)
        bar = f"[{'#' * filled}{'-' * (BAR - filled)}]"
        parts = [f"{bar} step {progress.step} of {progress.total} ({int(share * 100)} %)"]
    parts += [f"{name} {value}" for name, value in progress.metrics[:MOST_METRICS]]
    return ", ".join([*parts, *([f"{duration(left)} remaining"] if left is not None else [])])


def silence_text(hang: Hang, now: datetime) -> str:
    """Return the time without progress, and the rank whose progress report is the oldest."""
    blamed = hang.longest_silent_rank
    waits = f" and waits for {blamed.waits}" if blamed.waits else ""
    silent = f"{blamed.pod} has no output for {duration(now - blamed.since)}{waits}"
    return f"no progress for {duration(now - hang.since)}: {silent}"
