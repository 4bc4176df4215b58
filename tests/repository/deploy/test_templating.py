"""Tests objects that are templates with placeholders, and strings with two variants."""

import pytest
from deploy.packages.templating import block, either, expressions, inline, only_if, value

from leaderworkerset.install import rendering


def test_value_becomes_an_expression() -> None:
    text = expressions(rendering.document({"spec": {"replicas": value("replicaCount")}}))
    assert text == "spec:\n  replicas: {{ .Values.replicaCount }}\n"


def test_block_is_rendered_only_with_a_value() -> None:
    text = expressions(rendering.document({"a": {"b": block("x.y")}}))
    assert text == "a:\n{{- with .Values.x.y }}\n  b:\n    {{- toYaml . | nindent 4 }}\n{{- end }}\n"


def test_inline_entries_are_rendered_next_to_others() -> None:
    text = expressions(rendering.document({"a": {**inline("x"), "b": "c"}}))
    assert text == "a:\n{{- with .Values.x }}\n  {{- toYaml . | nindent 2 }}\n{{- end }}\n  b: c\n"


def test_block_must_not_start_an_item() -> None:
    """Without the value, the dash would be omitted."""
    with pytest.raises(ValueError, match="first key"):
        expressions(rendering.document({"a": [{"b": block("x")}]}))


@pytest.mark.parametrize(
    ("holds", "otherwise", "expected"),
    [
        ("a\nb\n", "a\nb\n", "a\nb\n"),
        ("a\nb\n", "a\n", "a\n{{- if c }}\nb\n{{- end }}\n"),
        ("a\n", "a\nb\n", "a\n{{- if not c }}\nb\n{{- end }}\n"),
    ],
)
def test_differing_lines_are_conditional(holds: str, otherwise: str, expected: str) -> None:
    assert either("c", holds, otherwise) == expected


def test_whole_text_is_conditional() -> None:
    assert only_if("c", "a\n") == "{{- if c }}\na\n{{- end }}\n"
