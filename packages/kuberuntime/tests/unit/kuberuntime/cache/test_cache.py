"""Tests that the cache contains the objects of the watch, and reports changes."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kuberuntime.cache.informing import pod

from kuberuntime.cache.cache import Change, Writer
from kuberuntime.cache.watch import (
    Bookmark,
    ListCompleted,
    ListItemRemoved,
    ListPage,
    ListStarted,
    ObjectApplied,
    ObjectDeleted,
)
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey, ResourceVersion

END = ListCompleted(ResourceVersion("9"))


def key(name: str) -> ObjectKey:
    return ObjectKey("default", name)


def group(obj: JSONObject) -> Iterable[str]:
    return [meta.labels(obj)["group"]]


def filled(*objects: JSONObject) -> Writer:
    writer = Writer({"group": group})
    for output in (ListStarted(), ListPage(objects), END):
        writer.apply(output)
    return writer


def test_objects_of_a_list_appear_when_it_is_complete() -> None:
    writer = filled(pod("old"))

    assert writer.apply(ListStarted()) == []
    assert writer.apply(ListPage((pod("a"),))) == []
    assert writer.list() == (pod("old"),)

    changes = writer.apply(END)

    assert writer.list() == (pod("a"),)
    assert changes == [Change(pod("old"), None), Change(None, pod("a"))]


def test_unchanged_object_is_not_reported_after_a_new_list() -> None:
    writer = filled(pod("a"), pod("b"))

    writer.apply(ListStarted())
    writer.apply(ListPage((pod("a"), pod("b", 2))))

    assert writer.apply(END) == [Change(pod("b"), pod("b", 2))]


def test_replaced_object_is_reported_as_deleted_and_added() -> None:
    writer = filled(pod("a", uid="1"))

    writer.apply(ListStarted())
    writer.apply(ListPage((pod("a", 2, uid="2"),)))

    assert writer.apply(END) == [Change(pod("a", uid="1"), None), Change(None, pod("a", 2, uid="2"))]


def test_new_list_discards_an_unfinished_one() -> None:
    writer = filled()
    for output in (ListStarted(), ListPage((pod("a"),)), ListStarted(), ListPage((pod("b"),))):
        writer.apply(output)

    assert writer.apply(END) == [Change(None, pod("b"))]


def test_object_dropped_from_an_unfinished_list_does_not_appear() -> None:
    writer = filled()
    for output in (ListStarted(), ListPage((pod("a"), pod("b"))), ListItemRemoved(pod("a", 2))):
        writer.apply(output)

    assert writer.apply(END) == [Change(None, pod("b"))]


def test_changes_appear_immediately() -> None:
    writer = filled()

    assert writer.apply(ObjectApplied(pod("a"))) == [Change(None, pod("a"))]
    assert writer.apply(ObjectApplied(pod("a", 2))) == [Change(pod("a"), pod("a", 2))]
    assert writer.get(key("a")) == pod("a", 2)
    assert writer.apply(ObjectDeleted(pod("a", 3))) == [Change(pod("a", 3), None)]
    assert writer.get(key("a")) is None
    assert len(writer) == 0


def test_deletion_of_an_unknown_object_is_not_a_change() -> None:
    assert filled().apply(ObjectDeleted(pod("a"))) == []


def test_bookmark_is_not_a_change() -> None:
    assert filled(pod("a")).apply(Bookmark(ResourceVersion("9"))) == []


def test_index_follows_the_objects() -> None:
    writer = filled(pod("a"), pod("b"))

    writer.apply(ObjectApplied(pod("a", 2, group="1")))

    assert writer.by_index("group", "0") == (pod("b"),)
    assert writer.by_index("group", "1") == (pod("a", 2, group="1"),)
    writer.apply(ObjectDeleted(pod("a", 3, group="2")))
    assert writer.by_index("group", "1") == ()


def test_unknown_index_error_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="index 'grup' does not exist; available: group"):
        filled().by_index("grup", "0")


def test_change_returns_the_newest_object() -> None:
    assert Change(pod("a"), None).object == pod("a")
    assert Change(pod("a"), pod("a", 2)).object == pod("a", 2)


NAMES = st.sampled_from(["a", "b", "c"])
OBJECTS = st.builds(lambda name, version: pod(name, version, group=str(version % 2)), NAMES, st.integers(1, 3))
OUTPUTS = st.one_of(
    st.builds(ObjectApplied, OBJECTS),
    st.builds(ObjectDeleted, OBJECTS),
    st.just(ListStarted()),
    st.builds(ListPage, st.lists(OBJECTS)),
    st.just(END),
)


@given(st.lists(OUTPUTS, max_size=30))
def test_replayed_changes_equal_the_store_and_its_index(
    outputs: list[ObjectApplied | ObjectDeleted | ListStarted | ListPage | ListCompleted],
) -> None:
    writer, replayed = filled(), dict[ObjectKey, JSONObject]()
    for output in outputs:
        for change in writer.apply(output):
            if change.new is None:
                del replayed[meta.key(change.object)]
            else:
                replayed[meta.key(change.new)] = change.new

    assert {meta.key(obj): obj for obj in writer.list()} == replayed
    for value in ("0", "1"):
        indexed = {meta.key(obj) for obj in writer.by_index("group", value)}
        assert indexed == {one for one, obj in replayed.items() if value in group(obj)}
