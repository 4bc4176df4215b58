"""Tests the validation of standard metadata (R-VAL-1, R-VAL-2)."""

from typing import Any

import pytest

from kuberuntime.objects import names, objectmeta

GOOD = {"name": "web", "namespace": "default"}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


def errors(**metadata: Any) -> list[str]:
    return [str(error) for error in objectmeta.validate(GOOD | metadata, names.dns_1035_label)]


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"generateName": "web-"},
        {"labels": {"a.b/c": "d"}, "annotations": {"A.b/c": "any thing"}, "finalizers": ["a.b/c"]},
        {"ownerReferences": [OWNER | {"controller": True}, OWNER]},
        {"managedFields": [{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1"}]},
        {"labels": None, "annotations": None, "ownerReferences": None, "finalizers": None, "managedFields": None},
        {"annotations": {"a": "x" * (256 * 1024 - 1)}},
    ],
)
def test_valid_metadata_has_no_errors(metadata: dict[str, Any]) -> None:
    assert errors(**metadata) == []


@pytest.mark.parametrize(
    ("metadata", "start"),
    [
        ({"name": "2cube"}, 'metadata.name: Invalid value: "2cube": a DNS-1035 label must'),
        ({"name": "a" * 64}, f'metadata.name: Invalid value: "{"a" * 64}": must be no more than 63 bytes'),
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"generateName": "Web-"}, 'metadata.generateName: Invalid value: "Web-": a DNS-1035'),
        ({"generateName": "-"}, 'metadata.generateName: Invalid value: "-": a DNS-1035'),
        ({"namespace": None}, "metadata.namespace: Required value"),
        ({"namespace": "a.b"}, 'metadata.namespace: Invalid value: "a.b": must not contain dots'),
        ({"generation": -1}, "metadata.generation: Invalid value: -1: must be greater than or equal to 0"),
        ({"labels": {"a b": ""}}, 'metadata.labels: Invalid value: "a b": name part must'),
        ({"annotations": {"a b": ""}}, 'metadata.annotations: Invalid value: "a b": name part must'),
        (
            {"annotations": {"a": "x" * 256 * 1024}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            {"ownerReferences": [OWNER | {"apiVersion": ""}]},
            'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        ),
        (
            {"ownerReferences": [OWNER, OWNER | {"uid": None}]},
            'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        ),
        (
            {"ownerReferences": [OWNER | {"controller": True}] * 2},
            "metadata.ownerReferences: Invalid value: [",
        ),
        ({"finalizers": ["a b"]}, 'metadata.finalizers: Invalid value: "a b": name part must'),
        (
            {"managedFields": [{"operation": "Patch"}]},
            'metadata.managedFields[0].operation: Invalid value: "Patch": must be `Apply` or `Update`',
        ),
        (
            {"managedFields": [{"operation": "Apply", "fieldsType": "V2"}]},
            'metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`',
        ),
        (
            {"managedFields": [{"operation": "Apply", "manager": "m" * 129}]},
            "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
        ),
    ],
)
def test_each_violation_is_one_error(metadata: dict[str, Any], start: str) -> None:
    (error,) = errors(**metadata)
    assert error.startswith(start)


def test_second_controller_reference_is_an_error() -> None:
    owners = [OWNER | {"controller": True}, OWNER | {"kind": "Node", "name": "n", "controller": True}]
    (error,) = errors(ownerReferences=owners)
    assert error.endswith(
        ': Only one reference can have Controller set to true. Found "true" in references for Pod/p and Node/n'
    )
