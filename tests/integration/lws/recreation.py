"""Who was recreated: what the tests of failures look for."""

from tests.integration.clusters.space import Space
from tests.integration.clusters.state import State, assert_settled

from leaderworkerset.api import labels, meta


def created_leaders(space: Space) -> list[str]:
    """Return the names of the leader pods that were created, once per creation."""
    return [
        meta.name(change.object)
        for change in space.changes
        if change.old is None and meta.labels(change.object).get(labels.WORKER_INDEX) == "0"
    ]


async def replaced(space: Space, before: State, *names: str) -> State:
    """Wait until the set is at rest and exactly these pods are others than before; return the state."""
    old = before.uids("web")

    def are_replaced(state: State) -> None:
        assert_settled(state, "web")
        assert {pod for pod, uid in state.uids("web").items() if old.get(pod) != uid} == set(names)

    return await space.until(are_replaced)


def assert_notes(state: State, notes: list[str]) -> None:
    """These recreations were told, each once."""
    assert sorted(state.notes("RecreateGroup")) == sorted(notes)
