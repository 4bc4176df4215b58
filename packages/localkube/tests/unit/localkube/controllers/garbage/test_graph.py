"""Who owns whom, and whom a change concerns."""

import pytest
from msgspec.structs import replace

from kuberuntime.objects.meta import UID, ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, PODS
from localkube.controllers.garbage.graph import FOREGROUND, MOST_GONE, ORPHAN, Graph, GraphNode, Owner, read_node


def node(name: str, *owners: str, blocks: bool = True) -> GraphNode:
    """Build a config map that is owned by others; its UID is its name."""
    references = tuple(Owner(UID(owner), "", "ConfigMap", owner, blocks) for owner in owners)
    return GraphNode(CONFIG_MAPS, ObjectKey("default", name), UID(name), references)


def deleting(one: GraphNode, *finalizers: str) -> GraphNode:
    """Return the object on its way out."""
    return replace(one, deleting=True, finalizers=frozenset(finalizers))


def build(*nodes: GraphNode) -> Graph:
    """Build a graph that has seen these objects."""
    graph = Graph()
    for one in nodes:
        graph.put(one)
    return graph


def test_an_object_without_owners_concerns_nobody() -> None:
    assert Graph().put(node("a")) == set()


def test_an_owned_object_is_looked_at_once() -> None:
    graph = Graph()
    assert graph.put(node("b", "a")) == {"b"}
    assert graph.put(node("b", "a")) == set()
    assert graph.put(replace(node("b", "a"), finalizers=frozenset({"x"}))) == set()


def test_dependents_of_a_deleted_object_are_looked_at() -> None:
    graph = build(node("a"), node("b", "a"), node("c", "a"), node("d", "b"))
    assert graph.remove(UID("a")) == {"b", "c"}
    assert graph.is_known_gone(UID("a"))
    assert not graph.is_known_gone(UID("never-seen"))


def test_as_many_deleted_owners_are_remembered_as_a_bound_says() -> None:
    graph = build(node("b", "a"))
    graph.note_absent(UID("a"))
    for number in range(MOST_GONE):
        graph.note_absent(UID(f"absent-{number}"))
    assert not graph.is_known_gone(UID("a"))
    assert all(graph.is_known_gone(UID(f"absent-{number}")) for number in range(MOST_GONE))
    assert len(graph._gone) == MOST_GONE


def test_a_deleted_object_that_nobody_names_is_not_remembered() -> None:
    graph = build(node("b", "a"))
    graph.remove(UID("b"))
    assert not graph.is_known_gone(UID("b"))


def test_a_foreground_deletion_concerns_the_owner_and_its_dependents() -> None:
    graph = build(node("a"), node("b", "a"))
    assert graph.put(deleting(node("a"), FOREGROUND)) == {"a", "b"}


def test_an_owner_that_waits_is_looked_at_when_a_dependent_goes_or_lets_it_go() -> None:
    graph = build(deleting(node("a"), FOREGROUND), node("b", "a"), node("c", "a"))
    assert graph.put(deleting(node("b", "a"))) == {"a", "b"}
    assert graph.remove(UID("b")) == {"a"}
    assert graph.put(node("c")) == {"a"}
    assert graph.blocking_dependents(UID("a")) == []


def test_an_orphaning_deletion_concerns_the_owner() -> None:
    assert build(node("a"), node("b", "a")).put(deleting(node("a"), ORPHAN)) == {"a"}


@pytest.mark.parametrize(("blocks", "expected"), [(True, ["b"]), (False, [])])
def test_only_references_that_block_hold_up_the_owner(*, blocks: bool, expected: list[str]) -> None:
    graph = build(deleting(node("a"), FOREGROUND), node("b", "a", blocks=blocks))
    assert [dependent.uid for dependent in graph.blocking_dependents(UID("a"))] == expected


def test_kinds_that_are_not_served_any_more_are_forgotten_without_being_deleted() -> None:
    graph = build(node("a"), node("b", "a"))
    graph.forget(CONFIG_MAPS)
    assert not graph.nodes
    assert not graph.is_known_gone(UID("a"))


def test_objects_are_reduced_to_what_matters() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "blockOwnerDeletion": True}
    metadata = {"name": "web-0", "namespace": "default", "uid": "2", "ownerReferences": [owner], "finalizers": ["x"]}
    assert read_node(PODS, {"metadata": metadata, "spec": {}}) == GraphNode(
        PODS,
        ObjectKey("default", "web-0"),
        UID("2"),
        (Owner(UID("1"), "apps", "StatefulSet", "web", blocks=True),),
        finalizers=frozenset({"x"}),
    )


def test_a_reference_must_fit_in_all_parts() -> None:
    pod = GraphNode(PODS, ObjectKey("default", "a"), UID("1"))
    assert pod.is_meant_by(Owner(UID("1"), "", "Pod", "a", blocks=False))
    assert not pod.is_meant_by(Owner(UID("1"), "", "Pod", "b", blocks=False))
    assert not pod.is_meant_by(Owner(UID("1"), "apps", "Pod", "a", blocks=False))
