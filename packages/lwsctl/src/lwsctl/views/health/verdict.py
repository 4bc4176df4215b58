"""The one verdict on a LeaderWorkerSet, a group or a rank, from its view, its memory and a known cause. Pure.

In: a view that remembers failures (`memory.py`), and the verdict of the first cause that matches. Out: a verdict.
`get`, `explain`, `wait`, `run`, `rollout status`, `doctor` and the dashboard show it, and no other module judges.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from lwsctl.views.health.memory import Crashes


class Verdict(StrEnum):
    """The state of a LeaderWorkerSet, a group or a rank, and of a cause that explains it."""

    STUCK = "stuck"
    """It does not continue without a user."""
    CRASHING = "crashing"
    """Its programs fail: it failed repeatedly, and has not been ready for long enough since."""
    UNKNOWN = "unknown"
    """Not ready, and no cause explains it."""
    UNREAD = "unread"
    """Not ready, and the evidence could not be read."""
    PROGRESSING = "progressing"
    """Not as desired yet, without an error."""
    STARTING = "starting"
    """Never ready yet, and within its patience."""
    HEALTHY = "healthy"
    COMPLETE = "complete"
    """It ran to completion."""


URGENCY: Final = tuple(Verdict)
"""The verdicts by urgency: the first one needs a user most."""

WORDS: Final = {
    **{verdict: verdict.value for verdict in Verdict},
    Verdict.UNKNOWN: "not ready",
    Verdict.UNREAD: "not ready",
}
"""The words of verdicts in sentences."""

NEEDS_USER: Final = frozenset({Verdict.STUCK, Verdict.CRASHING})
"""The verdicts that end a wait with `--fail-fast`, and that a page shows in red."""

CALM: Final = frozenset({Verdict.PROGRESSING, Verdict.STARTING})
"""Not as desired yet, and nothing is wrong."""

AS_DESIRED: Final = frozenset({Verdict.HEALTHY, Verdict.COMPLETE})


def ready_or_complete(verdict: Verdict, ready: int, desired: int) -> int:
    """Return how many groups are ready; all groups of a complete set have reached their end."""
    return desired if verdict is Verdict.COMPLETE else ready


class HealthFacts(Struct, frozen=True, kw_only=True):
    """The facts about a selection.

    `is_ready` compares it with the spec at this moment, `cause` is the verdict of the cause that explains it (None: no
    cause is known), and `is_read` is False if evidence could not be read.
    """

    is_complete: bool = False
    is_ready: bool = False
    crashes: tuple[Crashes, ...] = ()
    cause: Verdict | None = None
    is_read: bool = True


def judge(facts: HealthFacts, now: datetime) -> Verdict:
    """Return the verdict; the first failure of a group that recovers is not a crash loop yet."""
    current = [crashes for crashes in facts.crashes if not crashes.are_over(now)]
    if facts.is_complete:
        return Verdict.COMPLETE
    if current and facts.cause not in NEEDS_USER:
        return Verdict.CRASHING if any(crashes.count > 1 for crashes in current) else Verdict.PROGRESSING
    if facts.cause is not None:
        return facts.cause
    if facts.is_ready:
        return Verdict.HEALTHY
    return Verdict.UNKNOWN if facts.is_read else Verdict.UNREAD
