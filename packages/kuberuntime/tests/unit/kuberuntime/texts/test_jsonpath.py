"""Tests the paths of JSONPath, which printer columns and templates use."""

from typing import Any

import pytest

from kuberuntime.texts import jsonpath

OBJECT = {
    "spec": {"replicas": 0, "list": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]},
    "metadata": {"annotations": {"a.b/c": "x"}},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.replicas", [0]),
        (".spec.absent.below", []),
        (".spec.list[1].name", ["b"]),
        (".spec.list[-1].v", [2]),
        (".spec.list[*].name", ["a", "b"]),
        ('.spec.list[?(@.name=="b")].v', [2]),
        (".spec.list[?(@.name!='b')].v", [1]),
        (r".metadata.annotations.a\.b/c", ["x"]),
        (".metadata.annotations['a.b/c']", ["x"]),
    ],
)
def test_path_selects_values(path: str, expected: list[Any]) -> None:
    assert jsonpath.select(jsonpath.parse_path(path), OBJECT) == expected


@pytest.mark.parametrize("path", ["spec.replicas", ".spec[?(@.a>1)].b[", ".spec.list[len .a]"])
def test_unsupported_syntax_is_rejected(path: str) -> None:
    with pytest.raises(jsonpath.JSONPathError, match="is invalid"):
        jsonpath.parse_path(path)


def test_index_beyond_the_end_of_a_list_is_an_error() -> None:
    with pytest.raises(jsonpath.JSONPathError, match="out of bounds: the list has 2"):
        jsonpath.select(jsonpath.parse_path(".spec.list[9].v"), OBJECT)
