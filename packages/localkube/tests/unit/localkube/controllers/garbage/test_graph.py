"""Tests the owner graph, and which objects are enqueued after a change."""

import pytest
from msgspec.structs import replace

from kuberuntime.objects.meta import UID, ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, PODS
from localkube.controllers.garbage.graph import FOREGROUND, MAX_DELETED, ORPHAN, Graph, GraphNode, Owner, read_node


def node(name: str, *owners: str, blocks: bool = True) -> GraphNode:
    """Build a ConfigMap with owners. Its UID equals its name."""
    references = tuple(Owner(UID(owner), "", "ConfigMap", owner, blocks) for owner in owners)
    return GraphNode(CONFIG_MAPS, ObjectKey("default", name), UID(name), references)


def deleting(one: GraphNode, *finalizers: str) -> GraphNode:
    """Return the object with a deletion timestamp."""
    return replace(one, is_deleting=True, finalizers=frozenset(finalizers))


def build(*nodes: GraphNode) -> Graph:
    """Build a graph that has observed these objects."""
    graph = Graph()
    for one in nodes:
        graph.put(one)
    return graph


def test_object_without_owners_enqueues_nothing() -> None:
    assert Graph().put(node("a")) == set()


def test_owned_object_is_enqueued_once() -> None:
    graph = Graph()
    assert graph.put(node("b", "a")) == {"b"}
    assert graph.put(node("b", "a")) == set()
    assert graph.put(replace(node("b", "a"), finalizers=frozenset({"x"}))) == set()


def test_dependents_of_a_deleted_object_are_enqueued() -> None:
    graph = build(node("a"), node("b", "a"), node("c", "a"), node("d", "b"))
    assert graph.remove(UID("a")) == {"b", "c"}
    assert graph.is_known_deleted(UID("a"))
    assert not graph.is_known_deleted(UID("never-seen"))


def test_affected_objects_are_in_order_of_observation() -> None:
    names = [f"dependent-{number}" for number in range(20)]
    graph = build(node("a"), *(node(name, "a") for name in names))
    assert list(graph.put(deleting(node("a"), FOREGROUND))) == ["a", *names]
    assert list(graph.remove(UID("a"))) == names


def test_remembered_deleted_owners_are_bounded() -> None:
    graph = build(node("b", "a"))
    graph.note_absent(UID("a"))
    for number in range(MAX_DELETED):
        graph.note_absent(UID(f"absent-{number}"))
    assert not graph.is_known_deleted(UID("a"))
    assert all(graph.is_known_deleted(UID(f"absent-{number}")) for number in range(MAX_DELETED))
    assert len(graph._deleted) == MAX_DELETED


def test_deleted_object_without_dependents_is_not_remembered() -> None:
    graph = build(node("b", "a"))
    graph.remove(UID("b"))
    assert not graph.is_known_deleted(UID("b"))


def test_foreground_deletion_enqueues_owner_and_dependents() -> None:
    graph = build(node("a"), node("b", "a"))
    assert graph.put(deleting(node("a"), FOREGROUND)) == {"a", "b"}


def test_blocked_owner_is_enqueued_when_a_dependent_changes() -> None:
    graph = build(deleting(node("a"), FOREGROUND), node("b", "a"), node("c", "a"))
    assert graph.put(deleting(node("b", "a"))) == {"a", "b"}
    assert graph.remove(UID("b")) == {"a"}
    assert graph.put(node("c")) == {"a"}
    assert graph.blocking_dependents(UID("a")) == []


def test_orphaning_deletion_enqueues_the_owner() -> None:
    assert build(node("a"), node("b", "a")).put(deleting(node("a"), ORPHAN)) == {"a"}


@pytest.mark.parametrize(("blocks", "expected"), [(True, ["b"]), (False, [])])
def test_only_blocking_references_delay_the_owner(*, blocks: bool, expected: list[str]) -> None:
    graph = build(deleting(node("a"), FOREGROUND), node("b", "a", blocks=blocks))
    assert [dependent.uid for dependent in graph.blocking_dependents(UID("a"))] == expected


def test_forgotten_kinds_do_not_count_as_deleted() -> None:
    graph = build(node("a"), node("b", "a"))
    graph.forget(CONFIG_MAPS)
    assert not graph.nodes
    assert not graph.is_known_deleted(UID("a"))


def test_objects_are_reduced_to_owner_data() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "1", "blockOwnerDeletion": True}
    metadata = {"name": "web-0", "namespace": "default", "uid": "2", "ownerReferences": [owner], "finalizers": ["x"]}
    assert read_node(PODS, {"metadata": metadata, "spec": {}}) == GraphNode(
        PODS,
        ObjectKey("default", "web-0"),
        UID("2"),
        (Owner(UID("1"), "apps", "StatefulSet", "web", blocks_deletion=True),),
        finalizers=frozenset({"x"}),
    )


def test_owner_reference_must_match_in_all_parts() -> None:
    pod = GraphNode(PODS, ObjectKey("default", "a"), UID("1"))
    assert pod.is_owner(Owner(UID("1"), "", "Pod", "a", blocks_deletion=False))
    assert not pod.is_owner(Owner(UID("1"), "", "Pod", "b", blocks_deletion=False))
    assert not pod.is_owner(Owner(UID("1"), "apps", "Pod", "a", blocks_deletion=False))
