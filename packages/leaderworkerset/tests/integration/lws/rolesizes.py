"""Compares the role sizes of a DisaggregatedSet during a rollout with the contract."""

from tests.integration.clusters.space import LiveScenario

from kuberuntime.cache.informer import Change
from kuberuntime.objects import meta
from leaderworkerset.api.disaggregatedset import REVISION, ROLE
from leaderworkerset.api.resources import LEADERWORKERSETS

ROLES = ("prefill", "decode")

Counts = tuple[tuple[int, ...], tuple[int, ...]]
"""The old and new groups of each role, in the notation of the contract: 3,3/1,1."""


class Sizes:
    """The sizes of the roles' LeaderWorkerSets after each change."""

    def __init__(self, old_revision: str) -> None:
        self.seen: list[Counts] = []
        self._old = old_revision
        self._now: dict[tuple[bool, str], int] = {}

    def note(self, change: Change) -> None:
        labels = meta.labels(change.object)
        key = (labels[REVISION] == self._old, labels[ROLE])
        self._now[key] = 0 if change.new is None else int(meta.spec(change.new)["replicas"])
        counts = tuple(tuple(self._now.get((is_old, name), 0) for name in ROLES) for is_old in (True, False))
        if not self.seen or self.seen[-1] != counts:
            self.seen.append((counts[0], counts[1]))

    def assert_went_through(self, trace: str) -> None:
        """Assert that all states of a trace were observed in order, and that no state was outside its range."""
        steps = [as_counts(text) for text in trace.split()]
        seen = self.seen[self.seen.index(steps[0]) :]
        position = 0
        for counts in seen:
            if position + 1 < len(steps) and counts == steps[position + 1]:
                position += 1
                continue
            following = steps[min(position + 1, len(steps) - 1)]
            assert is_between(counts, steps[position], following), f"{counts} is not on the way: {seen}"
        assert position == len(steps) - 1, f"only {position} steps of {trace}: {seen}"


def followed_sizes(space: LiveScenario, old_revision: str) -> Sizes:
    """Return the sizes after this call, updated at each change."""
    sizes = Sizes(old_revision)
    space.informers[LEADERWORKERSETS].subscribe(sizes.note)
    return sizes


def as_counts(text: str) -> Counts:
    old, new = (tuple(map(int, side.split(","))) for side in text.split("/"))
    return old, new


def is_between(counts: Counts, before: Counts, after: Counts) -> bool:
    return all(min(low, high) <= value <= max(low, high) for value, low, high in triples_of(counts, before, after))


def triples_of(counts: Counts, before: Counts, after: Counts) -> list[tuple[int, int, int]]:
    sides = zip(counts, before, after, strict=True)
    return [triple for side in sides for triple in zip(*side, strict=True)]
