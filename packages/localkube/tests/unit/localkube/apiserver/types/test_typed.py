"""Tests the decoding of objects into their Go types (R-REV-6 defines the format)."""

from typing import Any

from localkube.apiserver.types import typed

POD = {"apiVersion": "v1", "kind": "Pod"}


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    return POD | {"spec": spec}


def test_result_shares_nothing_with_the_argument() -> None:
    given = pod({"containers": [{"name": "c", "env": [{"name": "A"}]}]}) | {"metadata": {"labels": {"a": "b"}}}
    found = typed.normalize("Pod", given)
    found["metadata"]["labels"]["x"] = "y"
    found["spec"]["containers"][0]["env"].append({"name": "B"})
    assert given["metadata"] == {"labels": {"a": "b"}}
    assert given["spec"]["containers"][0]["env"] == [{"name": "A"}]
