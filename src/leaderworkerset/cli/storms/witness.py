"""What happened to ranks during a storm, from what their pods were before and after each change. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.views.groups import place_of

Happened = Literal["failed", "gone", "made", "ready"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """What became of a rank, so many seconds after the storm began."""

    at: float
    rank: str
    what: Happened
    why: str = ""


@dataclass(slots=True)
class Witness:
    """Collects sightings, in the order of time."""

    sightings: list[Sighting] = field(default_factory=list)

    def see(self, at: float, old: JSONObject | None, new: JSONObject | None) -> None:
        """Note one change of a pod; `old` is None for a new pod, `new` for one that is gone."""
        rank = rank_of(new or old or {})
        if rank:
            self.sightings += [Sighting(at, rank, what, why) for what, why in _changes(old, new)]

    def first_failure(self) -> Sighting | None:
        """Return the first rank that failed or was removed."""
        return next((one for one in self.sightings if one.what in ("failed", "gone")), None)

    def last_ready(self) -> float:
        """Return when the last rank became ready, 0 where none did."""
        return max((one.at for one in self.sightings if one.what == "ready"), default=0.0)

    def recreated(self) -> dict[str, int]:
        """Return how often each group was made anew, by its leader's pods.

        >>> Witness([Sighting(1.0, "web/0/0", "made"), Sighting(1.0, "web/0/1", "made")]).recreated()
        {'web/0': 1}
        """
        made = (one.rank for one in self.sightings if one.what == "made")
        return _counted(rank.removesuffix("/0") for rank in made if rank.endswith("/0"))

    def failures(self) -> dict[str, int]:
        """Return how often each rank failed."""
        return _counted(one.rank for one in self.sightings if one.what == "failed")


def rank_of(pod: JSONObject) -> str:
    """Return LWS/GROUP/RANK of a pod; empty where it is no rank."""
    place = place_of(pod)
    return f"{meta.labels(pod).get(labels.NAME, '')}/{place[0]}/{place[1]}" if place else ""


def is_ready(pod: JSONObject) -> bool:
    """Return whether a pod is ready and stays."""
    return meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod)


def _changes(old: JSONObject | None, new: JSONObject | None) -> Iterator[tuple[Happened, str]]:
    if new is None:
        yield "gone", ""
        return
    if old is None or meta.uid(old) != meta.uid(new):
        yield "made", ""
    elif podstate.restarts(new) > podstate.restarts(old):
        yield "failed", podstate.why(new) or "restarted"
    elif is_ready(old) and not is_ready(new):
        yield "failed", "deleted" if meta.is_deleting(new) else podstate.why(new) or podstate.state(new)
    if is_ready(new) and not (old is not None and is_ready(old)):
        yield "ready", ""


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
