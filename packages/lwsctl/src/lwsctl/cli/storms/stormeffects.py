"""Derives the effects of a storm on ranks from changes to their pods. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.groupname import group_and_rank

Happened = Literal["failed", "ending", "gone", "made", "ready"]
"""The state of a pod. `ending` means that its deletion started, and `gone` means that it is deleted."""


class RankChange(Struct, frozen=True):
    """A change to a rank and its time in seconds since the start of the storm."""

    at: float
    rank: str
    change: Happened
    reason: str = ""


class StormEffects(Struct):
    """Collects changes to pods in chronological order."""

    changes: list[RankChange] = field(default_factory=list)

    def record(self, at: float, old: JSONObject | None, new: JSONObject | None) -> None:
        """Record a change to a pod. `old` is None for a created pod, and `new` is None for a deleted pod."""
        rank = rank_path(new or old or {})
        if rank:
            self.changes += [RankChange(at, rank, what, _termination(new)) for what in _changes(old, new)]
            self._explain(rank, _termination(new))

    def without_ranks(self, places: Collection[str]) -> "StormEffects":
        """Return the record without some ranks, which are specified by rank or by group.

        >>> StormEffects([RankChange(1.0, "web/0/0", "failed"), RankChange(2.0, "web/1/0", "failed")]).without_ranks(["web/0"]).count_failures()
        {'web/1/0': 1}
        """
        own = (
            sighting for sighting in self.changes if not {sighting.rank, sighting.rank.rpartition("/")[0]} & {*places}
        )
        return StormEffects(list(own))

    def first_failure(self) -> RankChange | None:
        """Return the first rank that failed or was removed."""
        return next((sighting for sighting in self.changes if sighting.change in ("failed", "ending", "gone")), None)

    def _explain(self, rank: str, why: str) -> None:
        """Add the exit of the container to the last failure of a rank.

        Kubelets report the exit after the pod is unready.
        """
        for index in range(len(self.changes) - 1, -1, -1):
            sighting = self.changes[index]
            if sighting.rank == rank:
                if sighting.change == "failed" and not sighting.reason:
                    self.changes[index] = replace(sighting, reason=why)
                return

    def last_ready(self) -> float:
        """Return the time at which the last rank became ready, or 0 if no rank became ready."""
        return max((sighting.at for sighting in self.changes if sighting.change == "ready"), default=0.0)

    def unready_periods(self, until: float) -> dict[str, list[tuple[float, float]]]:
        """Return the periods (start, end) in which ranks were not ready, limited to `until`.

        >>> StormEffects([RankChange(1.0, "web/0/0", "failed"), RankChange(3.5, "web/0/0", "ready")]).unready_periods(9.0)
        {'web/0/0': [(1.0, 3.5)]}
        """
        times: dict[str, list[tuple[float, float]]] = {}
        since: dict[str, float] = {}
        for sighting in self.changes:
            if sighting.change != "ready":
                since.setdefault(sighting.rank, sighting.at)
            elif sighting.rank in since:
                times.setdefault(sighting.rank, []).append((since.pop(sighting.rank), sighting.at))
        for rank, at in since.items():
            times.setdefault(rank, []).append((at, until))
        return dict(sorted(times.items()))

    def count_recreations(self) -> dict[str, int]:
        """Return the number of recreations of each group, based on the leader pods.

        >>> StormEffects([RankChange(1.0, "web/0/0", "made"), RankChange(1.0, "web/0/1", "made")]).count_recreations()
        {'web/0': 1}
        """
        ranks = (sighting.rank for sighting in self.changes if sighting.change == "made")
        return _count_names(rank.removesuffix("/0") for rank in ranks if rank.endswith("/0"))

    def count_failures(self) -> dict[str, int]:
        """Return the number of failures of each rank."""
        return _count_names(sighting.rank for sighting in self.changes if sighting.change == "failed")


def rank_path(pod: JSONObject) -> str:
    """Return LWS/GROUP/RANK for a pod, or an empty string if the pod is not a rank."""
    place = group_and_rank(pod)
    return f"{meta.labels(pod).get(labels.NAME, '')}/{place[0]}/{place[1]}" if place else ""


def _changes(old: JSONObject | None, new: JSONObject | None) -> Iterator[Happened]:
    if new is None:
        yield "gone"
        return
    if old is None or meta.uid(old) != meta.uid(new):
        yield "made"
    elif meta.is_deleting(new) and not meta.is_deleting(old):
        yield "ending"
    elif podstate.stays_ready(old) and (
        not podstate.stays_ready(new) or podstate.restart_count(new) > podstate.restart_count(old)
    ):
        yield "failed"
    if podstate.stays_ready(new) and not (old is not None and podstate.stays_ready(old)):
        yield "ready"


def _termination(pod: JSONObject | None) -> str:
    """Return how a container of an unready pod terminated, or an empty string if no container terminated."""
    for container in podstate.container_statuses(pod) if pod is not None and not podstate.stays_ready(pod) else ():
        for state in ("state", "lastState"):
            ended = (container.get(state) or {}).get("terminated") or {}
            if ended.get("exitCode"):
                return podstate.describe_termination(ended)
    return ""


def _count_names(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
