"""A value that differs little from one that was read before is read as if nothing had been."""

from typing import Any

import pytest
from hypothesis import given, settings
from tests.examples import examples
from tests.unit.kuberuntime.objects.gotypes.test_differing import CONTAINERS, written_by_go

from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.gotypes.declarations import KUBERNETES
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from kuberuntime.objects.gotypes.rereading import FEW, Reading, reread
from kuberuntime.objects.gotypes.roundtrip import is_written_as, round_trip


def pod(*containers: Any, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [*containers], **spec}}


def reading(value: Any) -> Reading:
    return Reading(value, round_trip(KUBERNETES, "PodTemplateSpec", value))


PLAIN = pod({"name": "c", "image": "app:1", "resources": {"limits": {"cpu": "1000m"}}}, {"name": "d"}, hostNetwork=True)


@pytest.mark.parametrize(
    "value",
    [
        PLAIN,
        pod({"name": "c", "image": "app:2", "resources": {"limits": {"cpu": "1000m"}}}, {"name": "d"}),
        pod({"name": "c"}, {"name": "d", "unknown": 1}, hostNetwork=None, unknown=2),
        pod({"name": "c"}, hostNetwork=False),
        pod({"name": "c", "resources": None}, None),
        pod(*({"name": f"c-{i}"} for i in range(FEW + 2))),
        {"metadata": None, "spec": {"containers": None}},
        {"spec": {"containers": []}},
        {},
        None,
    ],
)
@pytest.mark.parametrize("past", [PLAIN, pod(*({"name": f"d-{i}"} for i in range(FEW + 2))), pod(None, None), {}, None])
def test_what_was_read_before_makes_no_difference(value: Any, past: Any) -> None:
    assert reread(KUBERNETES, "PodTemplateSpec", value, reading(past)) == reading(value).written


@given(CONTAINERS, CONTAINERS)
@settings(max_examples=examples(200))
def test_a_container_is_read_as_if_none_had_been(value: Any, past: Any) -> None:
    expected, written = written_by_go(value), written_by_go(past)
    if expected is not None and written is not None:
        assert reread(KUBERNETES, "Container", value, Reading(past, written)) == expected


@given(CONTAINERS, CONTAINERS)
@settings(max_examples=examples(200))
def test_what_is_surely_written_is_what_is_written(value: Any, other: Any) -> None:
    expected, another = written_by_go(value), written_by_go(other)
    for written in (expected, another):
        if is_written_as(KUBERNETES, "Container", value, written):
            assert canonical_json(written) == canonical_json(expected)
    if expected is not None and value is not None and canonical_json(None) not in canonical_json(value):
        assert is_written_as(KUBERNETES, "Container", value, expected)


def test_what_is_as_before_is_taken_over() -> None:
    past = reading(PLAIN)
    edited = pod({"name": "c", "image": "app:2"}, {"name": "d"}, hostNetwork=True)

    written = reread(KUBERNETES, "PodTemplateSpec", edited, past)

    assert written["metadata"] is past.written["metadata"]
    assert written["spec"]["containers"][1] is past.written["spec"]["containers"][1]
    assert written["spec"]["containers"][0] == {"name": "c", "image": "app:2", "resources": {}}


def test_an_error_names_the_field_as_without_it() -> None:
    wrong = pod({"name": "c", "image": 7}, {"name": "d"}, hostNetwork="yes")

    with pytest.raises(GoTypeError) as expected:
        round_trip(KUBERNETES, "PodTemplateSpec", wrong, "template")
    with pytest.raises(GoTypeError) as found:
        reread(KUBERNETES, "PodTemplateSpec", wrong, reading(PLAIN), "template")

    assert str(found.value) == str(expected.value)
