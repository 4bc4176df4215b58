"""Tests the TLS profile, the overrides, and rejections by the manager in the operand configuration."""

import re
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from leaderworkerset.install.installsettings import CONFIGURATION, MOUNTED_CERTIFICATES
from leaderworkerset.operator import operandconfig
from leaderworkerset.operator.operandconfig import OverrideError
from leaderworkerset.operator.operatorspec import OperatorSettings


def test_configuration_equals_an_installation_by_default() -> None:
    """The configurations are equal byte for byte, so that no pod is recreated (R-OP-56)."""
    assert operandconfig.render(OperatorSettings(certificates="internal"), {}) == CONFIGURATION
    assert operandconfig.render(OperatorSettings(certificates="cert-manager"), {}) == MOUNTED_CERTIFICATES


def test_overrides_are_merged_and_take_precedence() -> None:
    """Fields can be added, replaced and removed (R-OP-41)."""
    tls = {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_AES_128_GCM_SHA256"]}
    overrides = {
        "clientConnection": {"qps": 20},
        "leaderElection": {"leaseDuration": "30s"},
        "tls": {"minVersion": "VersionTLS13", "cipherSuites": None},
    }
    found = yaml.safe_load(operandconfig.render(OperatorSettings(overrides=overrides), tls))
    assert found["leaderElection"] == {"leaderElect": True, "leaseDuration": "30s"}
    assert found["clientConnection"] == {"qps": 20}
    assert found["tls"] == {"minVersion": "VersionTLS13"}
    assert found["internalCertManagement"] == {"enable": False}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"replicas": 3}, 'unknown field "replicas"'),
        ({"kind": None}, "no kind"),
        ({"leaderElection": {"leaseDuration": "1s"}}, "leaseDuration"),
        ({"tls": {"minVersion": "VersionTLS10"}}, "minVersion"),
        ({"clientConnection": "fast"}, "clientConnection"),
    ],
)
def test_invalid_overrides_are_rejected(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(OverrideError, match=words) as caught:
        operandconfig.render(OperatorSettings(overrides=overrides), {})
    assert "spec.unsupportedConfigOverrides" in str(caught.value)


def test_deeply_nested_override_is_rejected() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"x": deep}
    with pytest.raises(OverrideError, match="deeper"):
        operandconfig.render(OperatorSettings(overrides=deep), {})


def test_overrides_can_change_the_group_restart_settings() -> None:
    wish = OperatorSettings(group_restarts='{"backoff": false, "releaseLostPodsAfter": "5m"}')
    assert yaml.safe_load(operandconfig.render(wish, {}))["groupRestarts"] == {
        "backoff": False,
        "releaseLostPodsAfter": "5m",
    }
    overridden = replace(wish, overrides={"groupRestarts": {"backoff": True}})
    assert yaml.safe_load(operandconfig.render(overridden, {}))["groupRestarts"]["backoff"] is True


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{", "JSON object"),
        ("[]", "JSON object"),
        ('{"backof": false}', 'unknown field "groupRestarts.backof"'),
        ('{"firstDelay": "2h"}', "groupRestarts.firstDelay"),
        ('{"x":' * 60_000, "JSON object"),
    ],
    ids=["cut", "list", "unknown", "too long", "deep"],
)
def test_invalid_restart_settings_name_the_annotation(given: str, words: str) -> None:
    with pytest.raises(OverrideError, match=re.escape(words)) as caught:
        operandconfig.render(OperatorSettings(group_restarts=given), {})
    assert str(caught.value).startswith("metadata.annotations[lws.x-k8s.io/group-restarts]: ")


def test_annotation_sets_the_pod_admission() -> None:
    assert yaml.safe_load(operandconfig.render(OperatorSettings(pod_admission="Auto"), {}))["podAdmission"] == "Auto"
    with pytest.raises(OverrideError, match=r"metadata.annotations\[lws.x-k8s.io/pod-admission\]: podAdmission"):
        operandconfig.render(OperatorSettings(pod_admission="Always"), {})
