"""Tests that the full version of the CRD equals the slim version with descriptions."""

import json
from collections.abc import Iterator
from typing import Any

from testkit.repository import ROOT

from leaderworkerset.api import conditions
from leaderworkerset.api.conditions import CONDITIONS, ConditionOutcome
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.descriptions import TEXTS, with_descriptions
from leaderworkerset.api.fieldtypes import TYPES

DOCUMENT = json.loads((ROOT / "deploy/openapi/core-v1.json").read_text())
SLIM = leaderworkerset_crd()
FULL = with_descriptions(SLIM, DOCUMENT)

WORDLESS = {"labels", "annotations", "finalizers", "name", "namespace"}
"""Fields of embedded metadata, which are listed in a separate table (R-API-5)."""


def root(crd: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def without_words(value: Any) -> Any:
    """Remove the descriptions of schemas, but not fields with the name `description`."""
    if isinstance(value, list):
        return [without_words(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_words(child)
        for name, child in value.items()
        if not (name == "description" and isinstance(child, str))
    }


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


def test_every_declared_condition_is_listed() -> None:
    declared = {one for one in vars(conditions).values() if isinstance(one, ConditionOutcome)}
    assert declared == {*CONDITIONS}, "put it into CONDITIONS (api/conditions.py)"


def test_definition_names_every_condition() -> None:
    words = next(field["description"] for path, field in fields(root(FULL)) if path == ".status.conditions")
    assert [word for word in words.split() if word.removesuffix(":") in {one.type for one in CONDITIONS}] == [
        f"{one.type}:" for one in CONDITIONS
    ]


def test_full_definition_adds_descriptions_only() -> None:
    assert without_words(root(FULL)) == without_words(root(SLIM)) == root(SLIM)
    assert {name: value for name, value in FULL["spec"].items() if name != "versions"} == {
        name: value for name, value in SLIM["spec"].items() if name != "versions"
    }


def test_every_field_is_described() -> None:
    """`kubectl explain` describes every field."""
    wordless = {path for path, field in fields(root(FULL)) if "description" not in field}
    undescribed = {path for path in wordless if ".metadata." not in path} - {".metadata"}
    assert undescribed == set(), "describe them in TEXTS of api/descriptions.py"
    assert {path.rsplit(".", 1)[1] for path in wordless - {".metadata"}} <= WORDLESS


def test_metadata_of_the_object_has_no_description() -> None:
    """An API server rejects a CRD with a description at this position."""
    assert root(FULL)["properties"]["metadata"] == {"type": "object"}


def test_pod_descriptions_equal_those_of_the_cluster() -> None:
    worker = root(FULL)["properties"]["spec"]["properties"]["leaderWorkerTemplate"]["properties"]["workerTemplate"]
    theirs = DOCUMENT["components"]["schemas"]["io.k8s.api.core.v1.Container"]["properties"]["image"]["description"]
    containers = worker["properties"]["spec"]["properties"]["containers"]
    assert containers["items"]["properties"]["image"]["description"] == theirs


def test_descriptions_belong_to_existing_fields() -> None:
    for struct, field in TEXTS:
        assert struct == "LeaderWorkerSet" or field in TYPES.fields(struct), f"{struct}.{field}"


def test_full_definition_fits_into_etcd() -> None:
    """etcd accepts requests of 1.5 MiB."""
    assert len(json.dumps(FULL)) < 1_000_000
