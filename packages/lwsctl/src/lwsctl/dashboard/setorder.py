"""Orders sets by their first failure, problems first. The order changes at most every ten seconds. Pure.

The input is the previous order and the current sets. The output is the next order. Rows remain at their position
while a user reads them.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct, field

from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import AS_DESIRED, CALM, Verdict

BETWEEN: Final = timedelta(seconds=10)
"""The minimum time between changes of the order."""

Place: TypeAlias = tuple[str, str, str]
"""The kind, namespace and name of a set."""

LAST: Final = datetime.max.replace(tzinfo=UTC)


class Tier(IntEnum):
    """The parts of the first page, in order."""

    PROBLEMS = 0
    PROGRESSING = 1
    HEALTHY = 2
    COMPLETE = 3


class SetOrder(Struct, frozen=True):
    """The position and tier of each set, the start of its problem, and the time of the last change."""

    positions: Mapping[Place, tuple[int, Tier]] = field(default_factory=dict)
    since: Mapping[Place, datetime] = field(default_factory=dict)
    changed: datetime | None = None

    def may_change(self, now: datetime) -> bool:
        """Return whether the order is permitted to change again."""
        return self.changed is None or now - self.changed >= BETWEEN

    def key(self, place: Place, diagnosis: Diagnosis) -> tuple[int, int, datetime, Place]:
        """Return the sort key of a set. New sets are last."""
        at, tier = self._position(place, diagnosis)
        return at, tier, self.since.get(place) or diagnosis.since or LAST, place

    def tier(self, place: Place, diagnosis: Diagnosis) -> Tier:
        """Return the part of the page that shows a set. It changes together with the order."""
        return self._position(place, diagnosis)[1]

    def _position(self, place: Place, diagnosis: Diagnosis) -> tuple[int, Tier]:
        return self.positions.get(place) or (len(self.positions), verdict_tier(diagnosis))


def verdict_tier(diagnosis: Diagnosis) -> Tier:
    """Return the part of the page for a verdict."""
    if diagnosis.verdict in AS_DESIRED:
        return Tier.COMPLETE if diagnosis.verdict is Verdict.COMPLETE else Tier.HEALTHY
    return Tier.PROGRESSING if diagnosis.verdict in CALM else Tier.PROBLEMS


def update_order(last: SetOrder, sets: Iterable[tuple[Place, Diagnosis]], now: datetime) -> SetOrder:
    """Return the order by first failure. While a problem continues, its time does not change."""
    known = dict(sets)
    problems = {place: diagnosis for place, diagnosis in known.items() if verdict_tier(diagnosis) is Tier.PROBLEMS}
    since = {place: min(last.since.get(place, now), diagnosis.since or now) for place, diagnosis in problems.items()}
    fresh = SetOrder(since=since)
    ranking = sorted(known, key=lambda place: fresh.key(place, known[place]))
    places = {place: (at, verdict_tier(known[place])) for at, place in enumerate(ranking)}
    return SetOrder(places, since, now)
