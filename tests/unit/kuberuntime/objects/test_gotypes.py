"""The typed round trip (R-REV-6): golden revisions of the Go controller, and each rule alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from kuberuntime.objects import gotypes
from kuberuntime.objects.gotypes import GoTypeError, canonical_json, round_trip

VECTORS = Path(__file__).parents[3] / "vectors"
REVISIONS = json.loads((VECTORS / "lws-revision-vectors.json").read_text())
RECORDED_TYPES = json.loads((VECTORS / "go-json-types.json").read_text())


@pytest.mark.parametrize("vector", REVISIONS, ids=lambda vector: vector["input"]["metadata"]["name"])
def test_revision_data_has_the_bytes_of_the_go_controller(vector: dict[str, Any]) -> None:
    """R-REV-4, R-REV-6, R-REV-9."""
    spec = vector["input"]["spec"]
    network = spec.get("networkConfig") or {"subdomainPolicy": "Shared"}
    data = {
        "spec": {
            "leaderWorkerTemplate": round_trip("LeaderWorkerTemplate", spec["leaderWorkerTemplate"])
            | {"$patch": "replace"},
            "networkConfig": round_trip("NetworkConfig", network) | {"$patch": "replace"},
        }
    }
    assert canonical_json(data).decode() == vector["dataRaw"]


def test_the_packaged_table_says_what_was_recorded() -> None:
    def notation(field: dict[str, Any]) -> str:
        go_type = field["type"].replace("struct:", "").replace("list<", "[]").replace("map<", "map[string]")
        options = [name for name in ("omitempty", "omitzero") if field.get(name)]
        return ",".join([("*" if field.get("ptr") else "") + go_type.rstrip(">"), *options])

    expected = {name: {field["name"]: notation(field) for field in fields} for name, fields in RECORDED_TYPES.items()}
    assert gotypes._table() == expected


@pytest.mark.parametrize("name", sorted(RECORDED_TYPES))
def test_the_zero_value_of_every_type_survives_a_second_round_trip(name: str) -> None:
    zero = round_trip(name, None)
    assert round_trip(name, zero) == zero


@pytest.mark.parametrize(
    ("type_name", "value", "expected"),
    [
        pytest.param("Toleration", {"key": "a", "mystery": 1}, {"key": "a"}, id="unknown fields vanish"),
        pytest.param("EmptyDirVolumeSource", {"medium": "", "sizeLimit": None}, {}, id="empty and null are dropped"),
        pytest.param("Capabilities", {"add": [], "drop": ["ALL"]}, {"drop": ["ALL"]}, id="empty list dropped"),
        pytest.param("FlexVolumeSource", {"driver": "d", "options": {}}, {"driver": "d"}, id="empty map dropped"),
        pytest.param("FlexVolumeSource", {"driver": "d", "options": None}, {"driver": "d"}, id="null map dropped"),
        pytest.param("Probe", {"periodSeconds": 0}, {}, id="zero dropped"),
        pytest.param(
            "SecurityContext",
            {"runAsUser": 0, "runAsNonRoot": False},
            {"runAsUser": 0, "runAsNonRoot": False},
            id="zero behind pointers kept",
        ),
        pytest.param("VolumeProjection", {"secret": {}}, {"secret": {}}, id="empty struct behind a pointer kept"),
        pytest.param("PodTemplateSpec", {}, {"metadata": {}, "spec": {"containers": None}}, id="structs always"),
        pytest.param("PodSpec", {"containers": []}, {"containers": []}, id="an empty list is not null"),
        pytest.param("GRPCAction", {"port": 5}, {"port": 5, "service": None}, id="null pointer without omitempty"),
        pytest.param(
            "ResourceFieldSelector",
            {"resource": "limits.cpu"},
            {"resource": "limits.cpu", "divisor": "0"},
            id="quantities always",
        ),
        pytest.param("TCPSocketAction", {}, {"port": 0}, id="int-or-string always"),
        pytest.param("TCPSocketAction", {"port": "http"}, {"port": "http"}, id="int-or-string as a name"),
        pytest.param("ObjectMeta", {"creationTimestamp": None}, {}, id="creation time of nothing is omitted"),
        pytest.param(
            "ObjectMeta",
            {"creationTimestamp": "2026-01-31T13:00:00.5+01:00"},
            {"creationTimestamp": "2026-01-31T12:00:00Z"},
            id="times become UTC seconds",
        ),
        pytest.param("HostAlias", {"hostnames": [None, "a"]}, {"ip": "", "hostnames": ["", "a"]}, id="null items"),
        pytest.param(
            "ResourceRequirements",
            {"limits": {"cpu": 0.5, "memory": None}, "requests": {"cpu": "1000m"}},
            {"limits": {"cpu": "500m", "memory": "0"}, "requests": {"cpu": "1"}},
            id="quantities are canonical",
        ),
        pytest.param("ManagedFieldsEntry", {"fieldsV1": {"f:a": {}}}, {"fieldsV1": {"f:a": {}}}, id="raw values stay"),
        pytest.param("TypedLocalObjectReference", {}, {"apiGroup": None, "kind": "", "name": ""}, id="always three"),
    ],
)
def test_round_trip(type_name: str, value: Any, expected: Any) -> None:
    """R-REV-6.1 to 6.6, contract appendix B."""
    assert round_trip(type_name, value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"containers": {}}, "spec.containers: Invalid value: {}: must be a list"),
        ({"containers": ["c"]}, 'spec.containers[0]: Invalid value: "c": must be an object'),
        ({"containers": [{"name": 7}]}, "spec.containers[0].name: Invalid value: 7: must be a string"),
        ({"hostNetwork": "yes"}, 'spec.hostNetwork: Invalid value: "yes": must be true or false'),
        ({"priority": True}, "spec.priority: Invalid value: true: must be an integer of 32 bits"),
        ({"priority": 1.0}, "spec.priority: Invalid value: 1.0: must be an integer of 32 bits"),
        ({"priority": 2**31}, "spec.priority: Invalid value: 2147483648: must be an integer of 32 bits"),
        ({"priority": -(2**31) - 1}, "spec.priority: Invalid value: -2147483649: must be an integer of 32 bits"),
        (
            {"activeDeadlineSeconds": 2**63},
            "spec.activeDeadlineSeconds: Invalid value: 9223372036854775808: must be an integer of 64 bits",
        ),
        ({"nodeSelector": []}, "spec.nodeSelector: Invalid value: []: must be an object"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector[a]: Invalid value: 1: must be a string"),
        ({"overhead": {"cpu": "much"}}, 'spec.overhead[cpu]: Invalid value: "much": must be a quantity like'),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_field(value: Any, message: str) -> None:
    with pytest.raises(GoTypeError) as caught:
        round_trip("PodSpec", value, "spec")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("field", "value"),
    [("priority", 2**31 - 1), ("priority", -(2**31)), ("activeDeadlineSeconds", 2**63 - 1)],
)
def test_integers_may_be_as_large_as_their_type(field: str, value: int) -> None:
    assert round_trip("PodSpec", {field: value})[field] == value


@pytest.mark.parametrize("value", ["yesterday", "2026-01-31T12:00:00", 5])
def test_a_time_must_be_a_moment(value: Any) -> None:
    with pytest.raises(GoTypeError, match=r"deletionTimestamp: Invalid value: .*: must be a time"):
        round_trip("ObjectMeta", {"deletionTimestamp": value})


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(KeyError, match="no Go type 'Ingress' is recorded"):
        round_trip("Ingress", {})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": {"d": None, "c": True}}, b'{"a":{"c":true,"d":null},"b":1}'),
        ("<a> & b\u2028\u2029", rb'"\u003ca\u003e \u0026 b\u2028\u2029"'),
        ("\b\f\n\r\t\x07\x1f", rb'"\b\f\n\r\t\u0007\u001f"'),
        ('"\\/', rb'"\"\\/"'),
        ("é中\x7f😀", '"é中\x7f😀"'.encode()),
        ([2**53, -(2**53) - 1, 2**63 - 1], b"[9007199254740992,-9007199254740992,9223372036854776000]"),
        ([], b"[]"),
        ([2**64, -(2**65)], b"[18446744073709552000,-36893488147419103000]"),
        (10**15 + 1, b"1000000000000001"),
        (2**60 + 1, b"1152921504606847000"),
        ({"a": 0.5, "b": 1e16, "c": -2.5e-7}, b'{"a":0.5,"b":1e+16,"c":-2.5e-07}'),
        ({"a:-12345678901234567": ",1.5", "b": "[1e5"}, b'{"a:-12345678901234567":",1.5","b":"[1e5"}'),
        ({"z": {"b": 0, "a": 1}, "é": [], "😀": 1, "": 2}, '{"":2,"z":{"a":1,"b":0},"é":[],"😀":1}'.encode()),
    ],
)
def test_canonical_json_is_what_go_writes(value: Any, expected: bytes) -> None:
    """R-REV-6.7 and R-REV-6.8."""
    assert canonical_json(value) == expected
