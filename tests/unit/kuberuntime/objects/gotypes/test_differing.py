"""What surely differs does differ once it is read into a Go type; what may be the same is never said to differ."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from kuberuntime.objects.gotypes.declarations import KUBERNETES
from kuberuntime.objects.gotypes.differing import surely_differs
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from kuberuntime.objects.gotypes.roundtrip import round_trip


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": "x"}, {"a": "y"}),
        ({"a": "1"}, {"a": "2"}),
        ({}, {"a": "y"}),
        ({"a": None}, {"a": {"b": ["c"]}}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": 1}, {"a": 2}),
        ({"a": True}, {"a": False}),
        ({"a": [{"b": "c", "d": 1}]}, {"a": [{"b": "c", "d": 2}]}),
        ({"limit": "2Gi"}, {"limit": "1Gi"}),
    ],
)
def test_a_text_a_number_or_a_length_tells(value: Any, written: Any) -> None:
    assert surely_differs(value, written)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": "x"}, {"a": "x"}),
        ({"a": "x", "b": "dropped"}, {"a": "x"}),
        ({}, {"resources": {}, "limit": "0", "text": "", "time": None}),
        ({"limit": "1024Mi"}, {"limit": "1Gi"}),
        ({"limit": 1}, {"limit": "1"}),
        ({"at": "2026-01-01T01:00:00+01:00"}, {"at": "2026-01-01T00:00:00Z"}),
        ({"at": "2026-01-01T00:00:00.0Z"}, {"at": "2026-01-01T00:00:00.000000Z"}),
        ({"n": 2**53}, {"n": 2**53 + 1}),
        ({"n": None}, {"n": 0}),
        ([None], [{}]),
        ({"a": "wrong"}, {"a": ["b"]}),
    ],
)
def test_other_notations_and_zeroes_do_not_tell(value: Any, written: Any) -> None:
    assert not surely_differs(value, written)


TEXTS = st.sampled_from(["", "a", "b", "0", "1", "1Gi", "1024Mi", "1.0"])
QUANTITIES = st.sampled_from(["0", "1", "1Gi", "1024Mi", "0.5", "500m", 1, 2, "1e3", "1k"])
CONTAINERS = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXTS,
        "image": TEXTS | st.none(),
        "args": st.none() | st.lists(TEXTS, max_size=2),
        "tty": st.booleans() | st.none(),
        "unknown": TEXTS,
        "env": st.none() | st.lists(st.fixed_dictionaries({}, optional={"name": TEXTS, "value": TEXTS}), max_size=2),
        "ports": st.lists(st.fixed_dictionaries({}, optional={"containerPort": st.integers(0, 2)}), max_size=2),
        "resources": st.none()
        | st.fixed_dictionaries({}, optional={"limits": st.dictionaries(TEXTS, QUANTITIES, max_size=2) | st.none()}),
        "securityContext": st.none() | st.fixed_dictionaries({}, optional={"runAsUser": st.integers(0, 1) | st.none()}),
        "readinessProbe": st.none()
        | st.fixed_dictionaries({"tcpSocket": st.fixed_dictionaries({"port": st.integers(0, 2) | TEXTS})}),
    },
)


def written_by_go(value: Any) -> Any:
    try:
        return round_trip(KUBERNETES, "Container", value)
    except GoTypeError:
        return None


@given(CONTAINERS, CONTAINERS)
@settings(max_examples=examples(300))
def test_nothing_that_go_writes_the_same_is_said_to_differ(value: Any, other: Any) -> None:
    written = written_by_go(other)
    if written is not None and surely_differs(value, written):
        assert written_by_go(value) != written
