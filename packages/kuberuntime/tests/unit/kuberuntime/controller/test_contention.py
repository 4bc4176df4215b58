"""Tests that equal writes that another writer reverts are delayed, and that other writes are not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from kuberuntime.controller.contention import (
    DELAY,
    LIMIT,
    MOST,
    WINDOW,
    Contention,
    Target,
    content_hash,
    describe_conflicts,
    write_target,
)
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import Apply, Patch, Put

WEB = Target(STATEFULSETS, ObjectKey("default", "web"), ("lws",))


def wrote(contents: list[int], seconds: float) -> tuple[Contention, float]:
    """Return the record after writes at equal intervals, and the time of the last write."""
    contention = Contention()
    for number, content in enumerate(contents):
        contention.record_write(WEB, content, number * seconds)
    return contention, (len(contents) - 1) * seconds


@pytest.mark.parametrize(
    ("contents", "seconds", "expected"),
    [
        ([1] * LIMIT, 0.01, DELAY),
        ([1] * (LIMIT - 1), 0.01, 0),
        ([1] * LIMIT, 7, 0),
        ([1, 2] * LIMIT, 0.01, 0),
        ([2, *[1] * (LIMIT - 1)], 0.01, 0),
        ([2, *[1] * LIMIT], 0.01, DELAY),
    ],
    ids=["taken back", "not yet", "slowly", "a rollout to and fro", "after other content", "more after other content"],
)
def test_equal_writes_wait(contents: list[int], seconds: float, expected: float) -> None:
    contention, now = wrote(contents, seconds)

    assert contention.delay(WEB, contents[-1], now) == pytest.approx(expected)
    assert contention.delay(WEB, 3, now) == 0
    assert contention.delay(WEB._replace(fields=("other",)), 1, now) == 0
    assert contention.delay(WEB._replace(key=ObjectKey("default", "api")), 1, now) == 0


def test_slow_writes_stay_slow_until_they_end() -> None:
    contention, now = wrote([1] * LIMIT, 0.01)
    for _ in range(2 * LIMIT):
        now += contention.delay(WEB, 1, now)
        contention.record_write(WEB, 1, now)
        assert contention.delay(WEB, 1, now) == pytest.approx(DELAY)

    assert contention.delay(WEB, 1, now + WINDOW + DELAY + 1) == 0
    assert len(contention) == 0


def test_wait_is_reported_once_for_each_write() -> None:
    contention, now = wrote([1] * LIMIT, 0.01)
    assert [contention.must_report(WEB) for _ in range(3)] == [True, False, False]
    contention.record_write(WEB, 1, now + DELAY)
    assert contention.must_report(WEB)


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 2)), max_size=80))
def test_writes_are_bounded_and_new_content_never_waits(requests: list[tuple[float, int]]) -> None:
    """However fast a rival is, at most `LIMIT` equal writes, and one more per pace, are sent within a minute."""
    contention, now, last = Contention(), 0.0, 0
    row: list[float] = []
    for gap, content in requests:
        now += gap
        wait = contention.delay(WEB, content, now)
        assert wait <= DELAY
        if content != last:
            assert wait == 0
            row, last = [], content
        if wait == 0:
            contention.record_write(WEB, content, now)
            row.append(now)
        recent = [moment for moment in row if now - moment < WINDOW]
        assert len(recent) <= LIMIT + WINDOW / DELAY


def test_memory_of_writes_is_bounded() -> None:
    contention = Contention()
    for number in range(MOST + 5):
        contention.record_write(WEB._replace(key=ObjectKey("default", str(number))), 1, 0)

    assert len(contention) == MOST


def scaling(replicas: int, version: str = "1", **fields: object) -> Patch:
    change = {"metadata": {"uid": "u", "resourceVersion": version}, "spec": {"replicas": replicas, **fields}}
    return Patch(resource=STATEFULSETS, key=WEB.key, patch=change)


def test_patches_differ_by_their_fields_and_values() -> None:
    """The resource version that guards a patch is not part of the written content."""
    one, again, other = scaling(1), scaling(1, "2"), scaling(2)
    assert write_target(one) == write_target(again) == write_target(other) == WEB._replace(fields=("spec.replicas",))
    assert content_hash(one) == content_hash(again) != content_hash(other)
    assert write_target(scaling(1, paused=True)) != write_target(one)


def test_writer_of_a_patched_field_is_named() -> None:
    rival = {
        "manager": "kubectl",
        "operation": "Update",
        "subresource": "scale",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    stored = {"metadata": {"managedFields": [rival]}, "spec": {"replicas": 5}}
    assert describe_conflicts(scaling(1), stored) == "spec.replicas is written by this process and by kubectl (Update)"
    assert describe_conflicts(scaling(5), stored) == ""


@pytest.mark.parametrize(
    ("managed", "writer"),
    [
        ([("go", "Update", True)], "go (Update)"),
        ([("lws", "Apply", False), ("go", "Update", True), ("kyverno", "Apply", True)], "go (Update), kyverno (Apply)"),
        ([("lws", "Apply", True)], "a different process with the field manager lws"),
        ([("lws", "Apply", False)], "a writer that removes it"),
    ],
    ids=["another name", "two", "the same name", "none"],
)
def test_writers_of_a_contested_field_are_named(managed: list[tuple[str, str, bool]], writer: str) -> None:
    entries = [
        {"manager": name, "operation": how, "fieldsV1": {"f:metadata": {"f:labels": {"f:role": {}}} if owns else {}}}
        for name, how, owns in managed
    ]
    metadata: JSONObject = {"name": "web", "labels": {"role": "other", "app": "web"}, "managedFields": entries}
    stored = {"metadata": metadata, "spec": {"list": [1, 2], "ports": [{"port": 1}]}}
    desired = {"metadata": {"name": "web", "labels": {"role": "leader", "app": "web"}}, "spec": {"list": [1]}}
    apply = Apply(resource=STATEFULSETS, object=desired, manager="lws")

    assert describe_conflicts(apply, stored) == f"metadata.labels.role is written by lws and by {writer}"
    assert (
        describe_conflicts(
            Apply(resource=STATEFULSETS, object=stored | {"metadata": {"name": "web"}}, manager="lws"), stored
        )
        == ""
    )


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([{"name": "main", "image": "app:1"}], ""),
        ([{"name": "new", "image": "x"}, {"name": "main", "image": "app:1"}], ""),
        ([{"name": "main", "image": "app:2"}], "spec.items[name=main].image is written by lws and by kyverno (Update)"),
        ([], ("spec.items[name=main].name is written by lws and by a writer that removes it; "
             "spec.items[name=main].image is written by lws and by kyverno (Update)")),
    ],
    ids=["as written", "in another order", "another value", "removed"],
)  # fmt: skip
def test_items_of_named_lists_are_fields(items: list[JSONObject], expected: str) -> None:
    fields: JSONObject = {"f:spec": {"f:items": {'k:{"name":"main"}': {"f:image": {}}}}}
    entry = {"manager": "kyverno", "operation": "Update", "fieldsV1": fields}
    stored = {"metadata": {"managedFields": [entry]}, "spec": {"items": items}}
    desired = {"metadata": {"name": "web"}, "spec": {"items": [{"name": "main", "image": "app:1"}]}}
    assert describe_conflicts(Apply(resource=STATEFULSETS, object=desired, manager="lws"), stored) == expected


def test_replacement_is_the_same_at_any_version() -> None:
    """A status that is included in the object, and fields that API servers set, are not written."""
    first, second = (
        Put(
            resource=STATEFULSETS,
            object={"metadata": {"name": "web", "generation": number}, "spec": {"a": 1}, "status": {"b": number}},
        )
        for number in (1, 2)
    )
    assert (write_target(first), content_hash(first)) == (write_target(second), content_hash(second))
