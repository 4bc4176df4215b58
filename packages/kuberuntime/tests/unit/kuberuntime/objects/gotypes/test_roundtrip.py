"""Tests each rule of the typed round trip separately (R-REV-6)."""

from typing import Any

import pytest

from kuberuntime.objects.gotypes.declarations import KUBERNETES
from kuberuntime.objects.gotypes.mismatch import GoTypeError
from kuberuntime.objects.gotypes.roundtrip import round_trip


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
def test_round_trip_equals_the_expected_value(type_name: str, value: Any, expected: Any) -> None:
    """Fields are removed, defaulted and ordered as in Go (R-REV-6.1 to 6.6, contract appendix B)."""
    assert round_trip(KUBERNETES, type_name, value) == expected


def test_round_trip_results_share_nothing() -> None:
    """Default values and small quantities are shared only if they are read and not changed."""
    claim = {"spec": {"resources": {"requests": {"storage": "1000m"}}}}

    one, other = (round_trip(KUBERNETES, "PersistentVolumeClaim", claim) for _ in range(2))
    one["status"]["phase"] = one["metadata"]["name"] = one["spec"]["resources"]["requests"]["storage"] = "changed"

    assert other == round_trip(KUBERNETES, "PersistentVolumeClaim", claim)
    assert other["spec"]["resources"]["requests"] == {"storage": "1"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"containers": {}}, "spec.containers: Invalid value: {}: must be a list"),
        ({"containers": ["c"]}, 'spec.containers[0]: Invalid value: "c": must be an object'),
        ({"containers": [{"name": 7}]}, "spec.containers[0].name: Invalid value: 7: must be a string"),
        ({"volumes": [None, {"downwardAPI": {"defaultMode": []}}]}, "spec.volumes[1].downwardAPI.defaultMode: Invalid"),
        (
            {"containers": [{"livenessProbe": {"tcpSocket": {"port": 2**31}}}]},
            "spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: 2147483648: must be a 32-bit integer or a string",
        ),
        (
            {"containers": [{"resources": {"limits": "1"}}]},
            'spec.containers[0].resources.limits: Invalid value: "1": must be an object',
        ),
        ({"hostNetwork": "yes"}, 'spec.hostNetwork: Invalid value: "yes": must be true or false'),
        ({"priority": True}, "spec.priority: Invalid value: true: must be a 32-bit integer"),
        ({"priority": 1.0}, "spec.priority: Invalid value: 1.0: must be a 32-bit integer"),
        ({"priority": 2**31}, "spec.priority: Invalid value: 2147483648: must be a 32-bit integer"),
        ({"priority": -(2**31) - 1}, "spec.priority: Invalid value: -2147483649: must be a 32-bit integer"),
        (
            {"activeDeadlineSeconds": 2**63},
            "spec.activeDeadlineSeconds: Invalid value: 9223372036854775808: must be a 64-bit integer",
        ),
        ({"nodeSelector": []}, "spec.nodeSelector: Invalid value: []: must be an object"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector[a]: Invalid value: 1: must be a string"),
        ({"overhead": {"cpu": "much"}}, 'spec.overhead[cpu]: Invalid value: "much": must be a quantity such as'),
        (
            {"overhead": {"cpu": "1", "memory": "much"}},
            'spec.overhead[memory]: Invalid value: "much": must be a quantity such as',
        ),
    ],
)
def test_wrong_type_error_names_the_field(value: Any, message: str) -> None:
    with pytest.raises(GoTypeError) as caught:
        round_trip(KUBERNETES, "PodSpec", value, "spec")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("field", "value"),
    [("priority", 2**31 - 1), ("priority", -(2**31)), ("activeDeadlineSeconds", 2**63 - 1)],
)
def test_integers_reach_the_limits_of_their_type(field: str, value: int) -> None:
    assert round_trip(KUBERNETES, "PodSpec", {field: value})[field] == value


@pytest.mark.parametrize("value", ["yesterday", "2026-01-31T12:00:00", 5])
def test_time_must_be_a_timestamp(value: Any) -> None:
    with pytest.raises(GoTypeError, match=r"deletionTimestamp: Invalid value: .*: must be a time"):
        round_trip(KUBERNETES, "ObjectMeta", {"deletionTimestamp": value})


def test_unknown_type_is_named() -> None:
    with pytest.raises(KeyError, match="no Go type 'Ingress' is recorded"):
        round_trip(KUBERNETES, "Ingress", {})
