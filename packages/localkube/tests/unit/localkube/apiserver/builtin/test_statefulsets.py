"""Tests that StatefulSets and ControllerRevisions behave as in kube-apiserver."""

from collections.abc import Callable
from typing import Any

Api = Any
Make = Callable[[str], Api]


def test_revision_data_is_kept_and_immutable(api: Make) -> None:
    """The order, null values and strings are preserved (R-REV-7).

    Therefore the data is encoded to the received bytes.
    """
    revisions = api("controllerrevisions.apps")
    data = {"spec": {"leaderWorkerTemplate": {"$patch": "replace", "workerTemplate": {"spec": {"containers": None}}}}}
    stored = revisions.create({"data": data, "revision": 1})
    assert stored["data"] == data
    assert "generation" not in stored["metadata"]
    errors = revisions.update_faults(stored, {"data": {}})
    assert errors == ["data: Invalid value: {}: field is immutable"]
    assert revisions.errors({"revision": 1}) == ["data: Required value: data is mandatory"]
