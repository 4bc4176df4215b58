"""Tests LeaderWorkerSet fields that the manager cannot parse."""

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset.invalidfields import unreadable_reason

COUNTS = f"annotation {labels.GROUP_RESTART_COUNTS}"


def counted(text: str) -> JSONObject:
    return builders.leaderworkerset_object(metadata={"annotations": {labels.GROUP_RESTART_COUNTS: text}})


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (builders.leaderworkerset_object(), ""),
        (counted('{"a/0": 1}'), ""),
        (counted(""), ""),
        (counted("null"), f"{COUNTS}: null: invalid group restart counts: expected a JSON object"),
        (counted('{"a/x": 1}'), f'{COUNTS}: {{"a/x": 1}}: invalid group restart count key "a/x"'),
        (builders.leaderworkerset_object(rollout={"maxUnavailable": "many"}), "many"),
    ],
    ids=["plain", "counts", "empty", "no object", "no index", "budget"],
)
def test_unreadable_field_is_named_with_its_value(obj: JSONObject, why: str) -> None:
    found = unreadable_reason(obj)
    assert bool(found) == bool(why)
    assert why in found


def test_long_value_is_truncated() -> None:
    assert len(unreadable_reason(counted("x" * 10_000))) < 400
