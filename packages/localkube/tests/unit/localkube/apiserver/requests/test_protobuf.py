"""Tests requests and responses with protobuf bodies."""

import pytest

from localkube.apiserver.requests import protobuf


def field(number: int, content: bytes | int) -> bytes:
    """Encode one short protobuf field."""
    if isinstance(content, int):
        return bytes((number << 3, content))
    return bytes((number << 3 | 2, len(content))) + content


def whole(api_version: str, kind: str, content: bytes) -> bytes:
    """Encode an object as protobuf."""
    identity = field(1, api_version.encode()) + field(2, kind.encode())
    return protobuf.MAGIC + field(1, identity) + field(2, content)


def entry(key: bytes, value: bytes) -> bytes:
    return field(1, key) + field(2, value)


METADATA = field(
    1, field(1, b"a") + field(2, b"") + field(8, b"") + field(11, entry(b"x", b"y")) + field(11, entry(b"z", b""))
)


def test_zero_values_are_omitted() -> None:
    assert protobuf.decode(whole("v1", "Namespace", METADATA + field(2, b"") + field(3, b""))) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "a", "labels": {"x": "y", "z": ""}},
    }


def test_maps_bytes_and_numbers_are_decoded() -> None:
    secret = METADATA + field(2, entry(b"k", b"\x00\x01")) + field(3, b"Opaque")
    assert protobuf.decode(whole("v1", "Secret", secret)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "labels": {"x": "y", "z": ""}},
        "data": {"k": "AAE="},
        "type": "Opaque",
    }
    port = field(1, b"http") + field(3, 80) + field(4, field(1, 1) + field(3, b"web"))
    other = field(3, 81) + field(4, field(1, 0) + field(2, 8))
    service = METADATA + field(2, field(1, port) + field(1, other) + field(13, 1))
    assert protobuf.decode(whole("v1", "Service", service))["spec"] == {
        "ports": [{"name": "http", "port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 8}],
        "publishNotReadyAddresses": True,
    }


def test_autoscaler_of_kubectl_autoscale_is_decoded() -> None:
    wanted = field(1, b"AverageValue") + field(3, field(1, b"500m"))
    metric = field(1, b"Resource") + field(4, field(1, b"cpu") + field(2, wanted))
    spec = field(1, field(1, b"Deployment") + field(2, b"web")) + field(3, 4) + field(4, metric)
    target = {"type": "AverageValue", "averageValue": "500m"}
    assert protobuf.decode(whole("autoscaling/v2", "HorizontalPodAutoscaler", METADATA + field(2, spec)))["spec"] == {
        "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        "maxReplicas": 4,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    with pytest.raises(protobuf.UnreadableError, match="HorizontalPodAutoscalerBehavior"):
        protobuf.decode(whole("autoscaling/v2", "HorizontalPodAutoscaler", METADATA + field(2, field(5, b"x"))))


def test_explicit_zero_is_kept() -> None:
    assert protobuf.decode(whole("v1", "DeleteOptions", field(1, 0)))["gracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{}", "does not start"),
        (whole("v1", "Pod", b""), "decoding Pod of v1 is not supported"),
        (protobuf.MAGIC + b"\x0a\x7f", "a field is incomplete"),
        (protobuf.MAGIC + b"\xff", "a number is incomplete"),
        (protobuf.MAGIC + b"\x0b", "unknown wire type 3"),
        (whole("v1", "ConfigMap", field(2, 1)), "is not a message"),
        (whole("v1", "ConfigMap", field(1, b"") + field(4, b"x")), "invalid encoding"),
    ],
)
def test_malformed_bytes_are_rejected(content: bytes, why: str) -> None:
    with pytest.raises(protobuf.UnreadableError, match=why):
        protobuf.decode(content)
