"""Tests the decoding of objects into their Go types (R-REV-6 defines the format)."""

from typing import Any

from localkube.apiserver.types import typed

POD = {"apiVersion": "v1", "kind": "Pod"}


def test_result_shares_nothing_with_the_argument() -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "env": [{"name": "A"}]}]}
    given: dict[str, Any] = POD | {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    found = typed.normalize("Pod", given)
    found["metadata"]["labels"]["x"] = "y"
    found["spec"]["containers"][0]["env"].append({"name": "B"})
    assert given["metadata"] == {"labels": {"a": "b"}}
    assert given["spec"]["containers"][0]["env"] == [{"name": "A"}]
