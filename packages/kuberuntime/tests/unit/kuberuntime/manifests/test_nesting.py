"""Tests that the depth of values is computed without recursion, and that too deep JSON is rejected."""

from typing import Any

import msgspec
import pytest

from kuberuntime.manifests import nesting
from kuberuntime.manifests.nesting import MAX_DEPTH, DepthError


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize("value", [None, "text", 3, {}, [], nested(MAX_DEPTH // 2)])
def test_value_within_the_depth_limit_is_accepted(value: object) -> None:
    assert not nesting.is_too_deep(value)
    assert nesting.decode(msgspec.json.encode(value)) == value


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 5_000, 500_000])
def test_json_that_is_nested_too_deeply_is_rejected(depth: int) -> None:
    with pytest.raises(DepthError, match="exceeded max depth: more than 100 nested objects"):
        nesting.decode("[" * depth + "]" * depth)


def test_depth_limit_can_be_reduced() -> None:
    assert nesting.is_too_deep({}, 0)
    assert not nesting.is_too_deep("text", 0)
