"""Tests label and field selectors."""

from typing import Any

import pytest

from kuberuntime.objects import selectors
from kuberuntime.objects.selectors import (
    SelectorError,
    field_text,
    from_object,
    parse_expression,
    parse_fields,
    parse_labels,
)

LABELS = {"app": "web", "tier": "a", "example.com/empty": "", "cores": "8"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "app",
        "app=web",
        "app==web",
        " app = web ",
        "app!=db",
        "gone!=x",
        "!gone",
        "! gone",
        "app,tier=a",
        "tier in (a,b)",
        "tier in ( b , a )",
        "tier notin (c)",
        "gone notin (c)",
        "example.com/empty=",
        "example.com/empty in (,x)",
        "cores>7",
        "cores<9",
        "app=web,!gone,tier in (a,b),cores>1",
    ],
)
def test_selector_matches_labels(text: str) -> None:
    assert parse_labels(text).matches(LABELS)


@pytest.mark.parametrize(
    "text",
    [
        "gone",
        "app=db",
        "app!=web",
        "!app",
        "tier in (b,c)",
        "tier notin (a)",
        "app=web,tier=b",
        "cores>8",
        "cores<8",
        "app>1",
        "gone<1",
        "gone=",
    ],
)
def test_selector_does_not_match_labels(text: str) -> None:
    assert not parse_labels(text).matches(LABELS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("app=web,", "a requirement is missing after the last comma"),
        (",app", "at ',app'"),
        ("app web", "at 'app web'"),
        ("a=b c", "at 'a=b c'"),
        ("a in b", "at 'a in b'"),
        ("x,a in (b", r"at 'a in \(b'"),
        ("a b/c=d", "at 'a b/c=d'"),
        ("a/b/c=d", "label 'a/b/c': a qualified name must"),
        ("a=-", "value '-': a valid label must"),
        ("a>b", "operator Gt requires one integer"),
    ],
)
def test_malformed_selector_is_rejected(text: str, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        parse_labels(text)


def test_selector_object_equals_its_text_form() -> None:
    selector = from_object(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "tier", "operator": "NotIn", "values": ["c"]},
                {"key": "app", "operator": "Exists"},
                {"key": "gone", "operator": "DoesNotExist", "values": []},
            ],
        }
    )
    assert selector.matches(LABELS)
    assert str(selector) == "app=web,tier in (a,b),tier!=c,app,!gone"
    assert parse_labels(str(selector)) == selector


def test_empty_object_selects_everything_and_null_nothing() -> None:
    assert from_object({}).matches({})
    assert from_object({"matchLabels": None, "matchExpressions": None}).matches(LABELS)
    assert not from_object(None).matches({})


def test_every_operator_is_formatted_as_parsed() -> None:
    text = "a=1,b!=2,c in (x,y),d notin (x,y),e,!f,g>3,h<4"
    assert str(parse_labels(text)) == text


def test_node_selectors_compare_integers() -> None:
    assert parse_expression({"key": "cores", "operator": "Gt", "values": ["7"]}).matches(LABELS)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Gt", "values": ["1"]}, "operator 'Gt' of label 'a' must be one of DoesNotExist, Ex"),
        ({"key": "a", "operator": "In"}, "operator In requires at least one value"),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, "operator Exists does not support values"),
        ({"key": "a", "operator": "In", "values": [1]}, "value 1: must be a string"),
        ({"operator": "In", "values": ["a b"]}, "value 'a b': a valid label"),
        ({"key": "a"}, "operator None of label 'a' must be one of"),
    ],
)
def test_malformed_expression_is_rejected(expression: dict[str, Any], message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        from_object({"matchExpressions": [expression]})


def test_labels_are_written_as_a_selector() -> None:
    assert selectors.format_labels({"b": "2", "a": "1"}) == "a=1,b=2"


POD = {"metadata": {"name": "web-0"}, "spec": {"nodeName": "n,1", "hostNetwork": False}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=web-0", True),
        ("metadata.name==web-0,status.phase!=Failed", True),
        ("metadata.name!=web-0", False),
        (r"spec.nodeName=n\,1", True),
        ("spec.hostNetwork=false", True),
        ("spec.gone=", True),
        ("metadata.name.deeper=x", False),
    ],
)
def test_field_selectors_match_fields(text: str, matches: bool) -> None:
    assert all(term.matches(field_text(POD, term.path)) for term in parse_fields(text)) is matches


@pytest.mark.parametrize("text", ["metadata.name", "=a", "a=b=c", "a=b\\x", "a=b,,c=d"])
def test_malformed_field_selector_is_rejected(text: str) -> None:
    with pytest.raises(SelectorError, match="unable to parse field selector"):
        parse_fields(text)
