"""Tests that the OpenShift TLS profile is converted to a configuration section that the manager accepts."""

from typing import Any

import msgspec
import pytest

from leaderworkerset.manager.config import configurationrules
from leaderworkerset.manager.config.configuration import TLS, ConfigurationError
from leaderworkerset.operator import openshift


def api_server(kind: str = "", **custom: Any) -> dict[str, Any]:
    profile: dict[str, Any] = {"type": kind} | ({"custom": custom} if custom else {})
    return {"metadata": {"name": "cluster"}, "spec": {"tlsSecurityProfile": profile} if kind else {}}


def suites(found: dict[str, Any]) -> list[str]:
    return list(openshift.tls_section(found).get("cipherSuites", []))


def test_tls_section_is_empty_without_openshift() -> None:
    assert openshift.tls_section(None) == {}


def test_cluster_without_a_profile_has_the_intermediate_one() -> None:
    """A cluster without a profile uses the intermediate profile (R-OP-28)."""
    assert openshift.tls_section(api_server()) == openshift.tls_section(api_server("Intermediate"))


def test_modern_profile_is_tls_1_3_without_suites() -> None:
    """The manager rejects cipher suites together with TLS 1.3."""
    assert openshift.tls_section(api_server("Modern")) == {"minVersion": "VersionTLS13"}


def test_old_profile_has_more_suites_and_no_older_version() -> None:
    old, intermediate = api_server("Old"), api_server("Intermediate")
    assert set(suites(old)) > set(suites(intermediate))
    assert openshift.tls_section(old)["minVersion"] == "VersionTLS12"


@pytest.mark.parametrize(
    ("custom", "expected"),
    [
        (
            {"ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"], "minTLSVersion": "VersionTLS12"},
            {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]},
        ),
        ({"ciphers": ["AES128-SHA"], "minTLSVersion": "VersionTLS10"}, None),
        ({"ciphers": ["TLS_AES_128_GCM_SHA256"], "minTLSVersion": "VersionTLS13"}, {"minVersion": "VersionTLS13"}),
        ({"ciphers": ["DES-CBC3-SHA"], "minTLSVersion": "VersionTLS12"}, {"minVersion": "VersionTLS12"}),
    ],
)
def test_custom_profile_omits_unsupported_suites(custom: dict[str, Any], expected: dict[str, Any] | None) -> None:
    """Suites that the manager does not support are omitted. Its minimum version is TLS 1.2."""
    oldest = {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_RSA_WITH_AES_128_CBC_SHA"]}
    assert openshift.tls_section(api_server("Custom", **custom)) == (expected or oldest)


@pytest.mark.parametrize("kind", ["Old", "Intermediate", "Modern", "Custom", "Other"])
def test_manager_accepts_every_section(kind: str) -> None:
    section = msgspec.convert(openshift.tls_section(api_server(kind)), TLS)
    try:
        configurationrules.check_tls(section)
    except ConfigurationError as error:
        pytest.fail(str(error))
    assert section.min_version


@pytest.mark.parametrize(
    "spec", ["text", 1, [], {"tlsSecurityProfile": "Modern"}, {"tlsSecurityProfile": {"type": {}}}, {"tlsSecurityProfile": {"custom": {"ciphers": 5}}}]
)  # fmt: skip
def test_malformed_api_server_means_the_intermediate_profile(spec: Any) -> None:
    assert openshift.tls_section({"spec": spec}) == openshift.tls_section({})


@pytest.mark.parametrize("status", ["text", 1, [], {"controlPlaneTopology": ["SingleReplica"]}])
def test_malformed_infrastructure_is_ignored(status: Any) -> None:
    assert not openshift.is_single({"status": status})
