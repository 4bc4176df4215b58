"""Tests strict decoding, defaults, and validation of the configuration file (contract 12.2)."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from leaderworkerset.core.policies.recreation import RestartSettings
from leaderworkerset.manager.config import configuration, configurationrules
from leaderworkerset.manager.config.configuration import TLS, Configuration, ConfigurationError

HEAD = {"apiVersion": "config.lws.x-k8s.io/v1", "kind": "Configuration"}


def decode(**sections: Any) -> Configuration:
    return configuration.decode(HEAD | sections)


def errors(**sections: Any) -> list[str]:
    return [str(error) for error in configurationrules.validate(decode(**sections))]


def test_defaults_equal_those_of_upstream() -> None:
    """Defaults equal the upstream defaults (R-OP-51)."""
    chosen = decode()
    assert chosen == Configuration()
    assert (chosen.webhook.port, chosen.webhook.host) == (9443, "")
    assert chosen.webhook.cert_dir == "/tmp/k8s-webhook-server/serving-certs"
    assert chosen.metrics.bind_address == ":8443"
    assert chosen.health.health_probe_bind_address == ":8081"
    election = chosen.leader_election
    assert [float(one) for one in (election.lease_duration, election.renew_deadline, election.retry_period)] == [
        15,
        10,
        2,
    ]
    assert (election.leader_elect, election.resource_name) == (True, "b8b2488c.x-k8s.io")
    assert chosen.internal_cert_management.webhook_secret_name == "lws-webhook-server-cert"
    assert (chosen.client_connection.qps, chosen.client_connection.burst) == (500, 500)
    assert chosen.gang_scheduling_management is None
    assert configurationrules.validate(chosen) == []


def test_deprecated_version_has_the_same_fields() -> None:
    """The deprecated version is still decoded strictly, and causes a warning (N-CFG-3)."""
    old = {"apiVersion": "config.lws.x-k8s.io/v1alpha1", "kind": "Configuration"}
    gates = {"featureGates": {"WorkloadAwareScheduling": True}}
    assert replace(configuration.decode(old | gates), api_version=configuration.API_VERSION) == decode(**gates)
    assert configuration.decode(old).api_version == configuration.DEPRECATED
    with pytest.raises(ConfigurationError, match='unknown field "foo"'):
        configuration.decode(old | {"foo": 1})


def test_feature_gate_is_off_by_default() -> None:
    """The feature gate is disabled by default (N-CFG-1)."""
    assert not decode().feature_gates.workload_aware_scheduling
    assert not decode(featureGates={"WorkloadAwareScheduling": False}).feature_gates.workload_aware_scheduling
    assert decode(featureGates={"WorkloadAwareScheduling": True}).feature_gates.workload_aware_scheduling
    with pytest.raises(ConfigurationError, match=r"featureGates\.WorkloadAwareScheduling: Expected `bool`"):
        decode(featureGates={"WorkloadAwareScheduling": "yes"})


def test_null_empty_and_zero_mean_the_default() -> None:
    """Go cannot distinguish these values either."""
    empty = {
        "webhook": None,
        "metrics": {"bindAddress": ""},
        "leaderElection": {"leaseDuration": "0s"},
        "clientConnection": {"qps": 0},
    }
    assert decode(**empty) == Configuration()


def test_false_does_not_mean_the_default() -> None:
    chosen = decode(leaderElection={"leaderElect": False}, internalCertManagement={"enable": False})
    assert not chosen.leader_election.leader_elect
    assert not chosen.internal_cert_management.enable


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"foo": 1}, 'strict decoding error: unknown field "foo"'),
        ({"featureGates": {"Foo": True}}, 'strict decoding error: unknown field "featureGates.Foo"'),
        ({"webhook": {"prt": 1}}, 'strict decoding error: unknown field "webhook.prt"'),
        (
            {"a": 1, "gangSchedulingManagement": {"b": 1}},
            'strict decoding error: unknown field "a", unknown field "gangSchedulingManagement.b"',
        ),
        ({"webhook": {"port": "x"}}, "strict decoding error: webhook.port: Expected `int`, got `str`"),
        ({"webhook": 3}, "strict decoding error: webhook: Expected `object`, got `int`"),
        (
            {"leaderElection": {"leaseDuration": 15}},
            "strict decoding error: leaderElection.leaseDuration: expected a duration such as 15s, got 15",
        ),
        (
            {"leaderElection": {"leaseDuration": "15"}},
            'strict decoding error: leaderElection.leaseDuration: time: missing unit in duration "15"',
        ),
    ],
)
def test_decoding_is_strict(sections: dict[str, Any], message: str) -> None:
    """The configuration file is decoded strictly (R-OP-51)."""
    with pytest.raises(ConfigurationError) as caught:
        decode(**sections)
    assert str(caught.value) == message


@pytest.mark.parametrize("document", [None, [], "text", {"kind": "Configuration"}, HEAD | {"kind": "Pod"}])
def test_other_kind_of_document_is_rejected(document: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"config\.lws\.x-k8s\.io/v1\b"):
        configuration.decode(document)


def test_gang_scheduling_requires_an_existing_provider() -> None:
    """Gang scheduling requires an existing provider (R-CFG-1, N-CFG-2)."""
    assert errors(gangSchedulingManagement={}) == [
        "schedulerProvider: Required value: must be set when gang scheduling is enabled"
    ]
    (unknown,) = errors(gangSchedulingManagement={"schedulerProvider": "kai"})
    assert unknown.startswith(
        'schedulerProvider: Unsupported value: "kai": supported values: "volcano", "kubernetes", '
    )
    for known in ("volcano", "kubernetes"):
        assert errors(gangSchedulingManagement={"schedulerProvider": known}) == []


def test_service_and_secret_names_are_checked_when_used() -> None:
    """Service and secret names are validated if they are used (R-CFG-1)."""
    wrong = {"webhookServiceName": "0x", "webhookSecretName": "A"}
    found = errors(internalCertManagement=wrong)
    assert [text.split(":")[0] for text in found] == [
        "internalCertManagement.webhookServiceName",
        "internalCertManagement.webhookSecretName",
    ]
    assert errors(internalCertManagement=wrong | {"enable": False}) == []


@pytest.mark.parametrize(
    ("election", "field"),
    [
        ({"leaseDuration": "10s"}, "leaseDuration"),
        ({"renewDeadline": "2s"}, "renewDeadline"),
        ({"retryPeriod": "-1s"}, "retryPeriod"),
        ({"leaseDuration": "500ms", "renewDeadline": "400ms", "retryPeriod": "100ms"}, "leaseDuration"),
        ({"resourceLock": "configmaps"}, "resourceLock"),
        ({"resourceName": "A_b/c"}, "resourceName"),
    ],
)
def test_leader_election_times_must_be_consistent(election: dict[str, str], field: str) -> None:
    assert [text.split(":")[0] for text in errors(leaderElection=election)] == [f"leaderElection.{field}"]
    assert errors(leaderElection=election | {"leaderElect": False}) == []


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (TLS(min_version="VersionTLS11"), 'invalid minVersion "VersionTLS11". Please use VersionTLS12 or VersionTLS13'),
        (
            TLS(min_version="VersionTLS13", cipher_suites=("TLS_AES_128_GCM_SHA256",)),
            "cipher suites may not be specified when minVersion is 'VersionTLS13'",
        ),
        (TLS(cipher_suites=("TLS_RSA_WITH_RC4_128_SHA",)), "Cipher suite TLS_RSA_WITH_RC4_128_SHA not supported"),
    ],
)
def test_unsupported_tls_settings_are_rejected(tls: TLS, message: str) -> None:
    """Unsupported TLS settings are rejected (R-CFG-2)."""
    with pytest.raises(ConfigurationError) as caught:
        configurationrules.check_tls(tls)
    assert message in str(caught.value)


def test_supported_tls_settings_are_accepted() -> None:
    configurationrules.check_tls(TLS())
    configurationrules.check_tls(TLS(min_version="VersionTLS13"))
    configurationrules.check_tls(TLS(min_version="VersionTLS12", cipher_suites=("TLS_AES_128_GCM_SHA256",)))


@pytest.mark.parametrize(
    ("section", "value", "field"),
    [
        ("webhook", {"port": 99999}, "port"),
        ("webhook", {"port": -1}, "port"),
        ("metrics", {"bindAddress": "8443"}, "bindAddress"),
        ("metrics", {"bindAddress": ":99999"}, "bindAddress"),
        ("health", {"healthProbeBindAddress": "localhost"}, "healthProbeBindAddress"),
        ("health", {"livenessEndpointName": "/{x"}, "livenessEndpointName"),
        ("health", {"readinessEndpointName": "ready?"}, "readinessEndpointName"),
        ("health", {"livenessEndpointName": "readyz"}, "livenessEndpointName"),
    ],
)
def test_invalid_addresses_and_ports_are_rejected(section: str, value: dict[str, Any], field: str) -> None:
    """The operator also rejects these settings, because it would roll them out (R-OP-41).

    A port above the highest was silently another one.
    """
    (error,) = errors(**{section: value})
    assert error.startswith(f"{section}.{field}: Invalid value")


def test_disabled_and_wildcard_addresses_are_accepted() -> None:
    assert errors(metrics={"bindAddress": "0"}, health={"healthProbeBindAddress": "[::]:8081"}) == []
    assert errors(webhook={"port": 0}, metrics={"bindAddress": ""}) == []  # zero values mean the default, as in Go


def test_group_restart_settings_have_defaults() -> None:
    """If the section is missing or empty, the product defaults apply."""
    assert decode().restarts == decode(groupRestarts={}).restarts == RestartSettings()
    section = {
        "backoff": False,
        "firstDelay": "5s",
        "longestDelay": "1m",
        "resetAfter": "1h",
        "maxGroupRestarts": 3,
        "releaseLostPodsAfter": "2m",
    }
    assert errors(groupRestarts=section) == []
    assert decode(groupRestarts=section).restarts == RestartSettings(
        has_backoff=False,
        first_delay=timedelta(seconds=5),
        longest_delay=timedelta(minutes=1),
        reset_after=timedelta(hours=1),
        max_restarts=3,
    )
    assert decode(groupRestarts=section).release_after == timedelta(minutes=2)


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"firstDelay": "100ms"}, "firstDelay"),
        ({"longestDelay": "25h"}, "longestDelay"),
        ({"firstDelay": "10m"}, "longestDelay"),
        ({"resetAfter": "-1s"}, "resetAfter"),
        ({"maxGroupRestarts": -1}, "maxGroupRestarts"),
        ({"maxGroupRestarts": 1001}, "maxGroupRestarts"),
        ({"releaseLostPodsAfter": "-1s"}, "releaseLostPodsAfter"),
    ],
)
def test_invalid_group_restart_settings_are_rejected(section: dict[str, Any], field: str) -> None:
    (error,) = errors(groupRestarts=section)
    assert error.startswith(f"groupRestarts.{field}: Invalid value")
