"""The configuration of the operand: profile and overrides, and what the manager would refuse."""

from typing import Any

import pytest
import yaml

from leaderworkerset.install.settings import CONFIGURATION, MOUNTED_CERTIFICATES
from leaderworkerset.operator import operandconfig
from leaderworkerset.operator.operandconfig import OverrideError


def test_without_profile_and_overrides_it_is_that_of_an_installation() -> None:
    """R-OP-56: byte for byte, so that no pod is replaced for it."""
    assert operandconfig.text("internal", {}, {}) == CONFIGURATION
    assert operandconfig.text("cert-manager", {}, {}) == MOUNTED_CERTIFICATES


def test_overrides_are_merged_and_have_the_last_word() -> None:
    """R-OP-41: a field may be added, replaced and removed."""
    tls = {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_AES_128_GCM_SHA256"]}
    overrides = {
        "clientConnection": {"qps": 20},
        "leaderElection": {"leaseDuration": "30s"},
        "tls": {"minVersion": "VersionTLS13", "cipherSuites": None},
    }
    found = yaml.safe_load(operandconfig.text("cert-manager", tls, overrides))
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
def test_what_the_manager_would_refuse_is_refused_here(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(OverrideError, match=words) as caught:
        operandconfig.text("internal", {}, overrides)
    assert "spec.unsupportedConfigOverrides" in str(caught.value)


def test_a_bottomless_patch_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"x": deep}
    with pytest.raises(OverrideError, match="deeper"):
        operandconfig.text("internal", {}, deep)
