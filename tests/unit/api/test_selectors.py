"""Label selectors as values."""

import pytest

from leaderworkerset.api import selectors
from leaderworkerset.api.selectors import Requirement


@pytest.mark.parametrize(
    ("operator", "values", "labels", "expected"),
    [
        ("In", ("a", "b"), {"k": "b"}, True),
        ("In", ("a", "b"), {}, False),
        ("NotIn", ("a",), {"k": "b"}, True),
        ("NotIn", ("a",), {"k": "a"}, False),
        ("NotIn", ("a",), {}, True),
        ("Exists", (), {"k": ""}, True),
        ("Exists", (), {}, False),
        ("DoesNotExist", (), {}, True),
        ("DoesNotExist", (), {"k": "a"}, False),
        ("Gt", ("3",), {"k": "4"}, True),
        ("Gt", ("3",), {"k": "3"}, False),
        ("Lt", ("3",), {"k": "-4"}, True),
        ("Lt", ("3",), {"k": "many"}, False),
        ("Lt", ("3",), {}, False),
        ("Lt", (), {"k": "1"}, False),
        ("Near", ("a",), {"k": "a"}, False),
    ],
)
def test_a_requirement_holds_as_its_operator_says(
    operator: str, values: tuple[str, ...], labels: dict[str, str], expected: bool
) -> None:
    assert Requirement("k", operator, values).holds(labels) is expected


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not selectors.matches(selectors.parse(None), {"a": "b"})
    assert selectors.matches(selectors.parse({}), {"a": "b"})


def test_labels_and_expressions_must_all_hold() -> None:
    selector = selectors.parse(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}
    )
    assert selectors.matches(selector, {"app": "web"})
    assert not selectors.matches(selector, {"app": "web", "tier": "x"})
    assert not selectors.matches(selector, {"tier": "y"})
