"""Derives the verdict for a LeaderWorkerSet, group or rank from its view, its history and a known cause. Pure.

The input is a view with recorded failures (`failurehistory.py`), and the verdict of the first matching cause. The
output is a verdict. `get`, `explain`, `wait`, `run`, `rollout status`, `doctor` and the dashboard all use this
verdict.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from lwsctl.model.failurehistory import Crashes


class Verdict(StrEnum):
    """The state of a LeaderWorkerSet, group or rank, or the state that a cause implies."""

    STUCK = "stuck"
    """The set does not make progress until a user acts."""
    CRASHING = "crashing"
    """The containers fail repeatedly, and the set has not been ready for long enough since then."""
    UNKNOWN = "unknown"
    """The set is not ready, and no known cause applies."""
    UNREAD = "unread"
    """The set is not ready, and the evidence could not be read."""
    PROGRESSING = "progressing"
    """The set is not in its desired state, but there is no error."""
    STARTING = "starting"
    """The set was never ready but is within its time limit."""
    HEALTHY = "healthy"
    COMPLETE = "complete"
    """The set ran to completion."""


URGENCY: Final = tuple(Verdict)
"""The verdicts sorted by urgency, with the most urgent first."""

WORDS: Final = {
    **{verdict: verdict.value for verdict in Verdict},
    Verdict.UNKNOWN: "not ready",
    Verdict.UNREAD: "not ready",
}
"""The description of each verdict for use in sentences."""

NEEDS_USER: Final = frozenset({Verdict.STUCK, Verdict.CRASHING})
"""The verdicts that require action by a user. They stop a wait with `--fail-fast`, and are red on the dashboard."""

CALM: Final = frozenset({Verdict.PROGRESSING, Verdict.STARTING})
"""The verdicts without an error for sets that have not reached the desired state."""

AS_DESIRED: Final = frozenset({Verdict.HEALTHY, Verdict.COMPLETE})


def ready_or_complete(verdict: Verdict, ready: int, desired: int) -> int:
    """Return the number of ready groups. If the set is complete, return the number of all groups."""
    return desired if verdict is Verdict.COMPLETE else ready


class HealthFacts(Struct, frozen=True, kw_only=True):
    """The health of a selection, from which a verdict is derived.

    `is_ready` is true if the selection currently matches the spec. `cause` is the verdict of the matching cause, or
    None if there is none. `is_read` is false if evidence could not be read.
    """

    is_complete: bool = False
    is_ready: bool = False
    crashes: tuple[Crashes, ...] = ()
    cause: Verdict | None = None
    is_read: bool = True


def derive_verdict(facts: HealthFacts, now: datetime) -> Verdict:
    """Return the verdict. The first failure of a group that recovers is not considered a crash loop."""
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
