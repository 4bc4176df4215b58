"""Tests the JSONPath subset for printer columns."""

from typing import Any

import pytest

from localkube.apiserver.tables import jsonpath

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
        (".spec.list[9].v", []),
        (".spec.list[*].name", ["a", "b"]),
        ('.spec.list[?(@.name=="b")].v', [2]),
        (".spec.list[?(@.name!='b')].v", [1]),
        (r".metadata.annotations.a\.b/c", ["x"]),
        (".metadata.annotations['a.b/c']", ["x"]),
    ],
)
def test_path_selects_values(path: str, expected: list[Any]) -> None:
    assert jsonpath.parse(path)(OBJECT) == expected


@pytest.mark.parametrize("path", ["spec.replicas", ".spec[?(@.a>1)].b[", ".spec..x"])
def test_unsupported_syntax_is_refused(path: str) -> None:
    with pytest.raises(jsonpath.JSONPathError, match="is not supported"):
        jsonpath.parse(path)
