"""Observes group recreations, for the tests of failures."""

from tests.integration.clusters.space import LIMIT, LiveScenario
from tests.integration.clusters.state import State, assert_settled

from kuberuntime.objects import meta
from leaderworkerset.api import labels


def created_leaders(space: LiveScenario, name: str = "web") -> list[str]:
    """Return the name of each created leader pod, once per creation."""
    wanted = {labels.NAME: name, labels.WORKER_INDEX: "0"}
    return [
        meta.name(change.object)
        for change in space.changes
        if change.old is None and wanted.items() <= meta.labels(change.object).items()
    ]


async def replaced(space: LiveScenario, before: State, *names: str, name: str = "web", limit: float = LIMIT) -> State:
    """Wait until reconciliation finishes and exactly these pods were replaced. Return the state."""
    old = before.uids(name)

    def are_replaced(state: State) -> None:
        assert_settled(state, name)
        assert {pod for pod, uid in state.uids(name).items() if old.get(pod) != uid} == set(names)

    return await space.until(are_replaced, limit=limit)


def assert_notes(state: State, notes: list[str], name: str = "web") -> None:
    """Assert that exactly these recreations were reported."""
    assert sorted(state.notes("RecreateGroup", name)) == sorted(notes)
