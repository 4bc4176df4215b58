"""Tests environment values from ConfigMaps and Secrets."""

import pytest

from localkube.kubelet.node import objects
from localkube.kubelet.spec.podspec import SpecError


def test_texts_and_binary_data_become_bytes() -> None:
    config_map = {"data": {"a": "ü"}, "binaryData": {"b": "/w=="}}
    assert objects.config_map_data(config_map) == {"a": b"\xc3\xbc"}
    assert objects.config_map_binary(config_map) == {"b": b"\xff"}
    assert objects.secret_data({"data": {"t": "czNjcmV0"}}) == {"t": b"s3cret"}
    assert objects.config_map_data({}) == objects.secret_data({"data": None}) == {}


def test_malformed_base64_is_named() -> None:
    broken = {"kind": "Secret", "metadata": {"namespace": "default", "name": "token"}, "data": {"t": "%"}}
    with pytest.raises(SpecError, match=r"Secret default/token, data\[t\]: invalid base64"):
        objects.secret_data(broken)
