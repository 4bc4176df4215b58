"""Tests the decision about an object whose owners may be deleted."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from testkit.examples import examples
from tests.unit.localkube.controllers.garbage.test_graph import node

from kuberuntime.objects.meta import UID
from localkube.controllers.garbage.deletiondecision import Collect, Keep, OwnerState, RemoveOwners, Verdict, decide
from localkube.controllers.garbage.graph import FOREGROUND, ORPHAN, Graph, GraphNode

SOLID, WAITING, ABSENT = OwnerState.SOLID, OwnerState.WAITING, OwnerState.ABSENT


CHILD = node("child", "x")
FOREGROUND_CHILD = replace(node("child", "x"), is_deleting=True, finalizers=frozenset({FOREGROUND}))


@pytest.mark.parametrize(
    ("states", "dependents", "expected"),
    [
        pytest.param({}, [], Keep(), id="nobody owns it"),
        pytest.param({"a": SOLID}, [], Keep(), id="its owner is there"),
        pytest.param({"a": ABSENT}, [], Collect("Background"), id="its owner is gone"),
        pytest.param({"a": SOLID, "b": ABSENT}, [], RemoveOwners(frozenset({UID("b")})), id="one of two is gone"),
        pytest.param({"a": SOLID, "b": WAITING}, [], RemoveOwners(frozenset({UID("b")})), id="one of two waits"),
        pytest.param({"a": WAITING}, [], Collect("Background"), id="its owner waits, nothing below"),
        pytest.param({"a": WAITING}, [CHILD], Collect("Foreground"), id="its owner waits, more below"),
        pytest.param({"a": ABSENT}, [CHILD], Collect("Background"), id="gone, more below"),
        pytest.param({"a": WAITING}, [FOREGROUND_CHILD], Collect("Foreground", unblocks_owners=True), id="a circle"),
    ],
)
def test_verdict_follows_the_states_of_the_owners(
    states: dict[str, OwnerState], dependents: list[GraphNode], expected: Verdict
) -> None:
    known = {UID(uid): state for uid, state in states.items()}
    assert decide(node("x", *states), known, dependents) == expected


@pytest.mark.parametrize(("finalizer", "propagation"), [(ORPHAN, "Orphan"), (FOREGROUND, "Foreground")])
def test_finalizers_of_the_object_set_the_propagation(finalizer: str, propagation: str) -> None:
    one = replace(node("x", "a"), finalizers=frozenset({finalizer}))
    verdict = decide(one, {UID("a"): ABSENT}, [])
    assert isinstance(verdict, Collect)
    assert verdict.propagation == propagation


def test_object_being_deleted_is_kept() -> None:
    assert decide(replace(node("x", "a"), is_deleting=True), {}, []) == Keep()


def collect(owners: dict[str, set[str]], deleted: set[str]) -> set[str]:
    """Delete some objects and collect the garbage. Return the remaining objects."""
    graph = Graph()
    for name, names in owners.items():
        graph.put(node(name, *sorted(names)))
    queue = deque(uid for name in sorted(deleted) for uid in graph.remove(UID(name)))
    while queue:
        one = graph.nodes.get(queue.popleft())
        if one is None:
            continue
        states = {owner.uid: SOLID if owner.uid in graph.nodes else ABSENT for owner in one.owners}
        match decide(one, states, graph.dependents(one.uid)):
            case Collect():
                queue.extend(graph.remove(one.uid))
            case RemoveOwners(uids):
                kept = tuple(owner for owner in one.owners if owner.uid not in uids)
                queue.extend(graph.put(replace(one, owners=kept)))
            case Keep():
                pass
    return set(graph.nodes)


def reachable(owners: dict[str, set[str]], deleted: set[str]) -> set[str]:
    """Return the remaining objects, which have no owners or at least one existing owner."""
    left = owners.keys() - deleted
    while True:
        kept = {name for name in left if not owners[name] or owners[name] & left}
        if kept == left:
            return set(kept)
        left = kept


NAMES = [str(number) for number in range(10)]


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(
    st.fixed_dictionaries({name: st.sets(st.sampled_from(NAMES), max_size=3) for name in NAMES}),
    st.sets(st.sampled_from(NAMES)),
)
def test_exactly_the_unreachable_objects_are_collected(owners: dict[str, set[str]], deleted: set[str]) -> None:
    assert collect(owners, deleted) == reachable(owners, deleted)
