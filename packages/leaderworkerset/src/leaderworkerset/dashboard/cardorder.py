"""The order of the cards: problems first, by the time of their first failure, rearranged at most every ten seconds. Pure.

In: the last order and the current sets. Out: the next order. A person who reads a card finds it in the same place.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from msgspec import Struct, field

from leaderworkerset.diagnosis.finding import Diagnosis
from leaderworkerset.views.health.verdict import AS_DESIRED, CALM

BETWEEN: Final = timedelta(seconds=10)
"""The minimum time between two changes of the order."""

Place: TypeAlias = tuple[str, str, str]
"""The kind, namespace and name of a set."""

LAST: Final = datetime.max.replace(tzinfo=UTC)


class CardOrder(Struct, frozen=True):
    """The places in order, since when each set has had a problem, and when the order changed last."""

    places: Mapping[Place, int] = field(default_factory=dict)
    since: Mapping[Place, datetime] = field(default_factory=dict)
    changed: datetime | None = None

    def may_change(self, now: datetime) -> bool:
        """Return whether the order is old enough to change."""
        return self.changed is None or now - self.changed >= BETWEEN

    def key(self, place: Place, diagnosis: Diagnosis) -> tuple[int, int, datetime, Place]:
        """Return the key to sort a set by; a set that is not in the order yet follows the others."""
        tier, since = tier_of(diagnosis), self.since.get(place) or diagnosis.since or LAST
        return self.places.get(place, len(self.places)), tier, since, place


def tier_of(diagnosis: Diagnosis) -> int:
    """Return the part of the page: problems, then sets in progress, then sets that are as desired."""
    if diagnosis.verdict in AS_DESIRED:
        return 2
    return 1 if diagnosis.verdict in CALM else 0


def arrange(last: CardOrder, sets: Iterable[tuple[Place, Diagnosis]], now: datetime) -> CardOrder:
    """Return the order by the first failure; a problem that continues keeps the time at which it was first seen."""
    known = dict(sets)
    problems = {place: diagnosis for place, diagnosis in known.items() if not tier_of(diagnosis)}
    since = {place: min(last.since.get(place, now), diagnosis.since or now) for place, diagnosis in problems.items()}
    fresh = CardOrder(since=since)
    ranking = sorted(known, key=lambda place: fresh.key(place, known[place]))
    return CardOrder({place: at for at, place in enumerate(ranking)}, since, now)
