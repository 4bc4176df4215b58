"""Tests the settings of the manager's components, which are derived from its configuration."""

import ssl

from kuberuntime.objects.duration import Duration
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.manager.config.configuration import TLS, Configuration, LeaderElection
from leaderworkerset.manager.managerprocess import election_settings, tls_settings


def test_lease_is_in_the_namespace_of_the_manager() -> None:
    """The lease is in the manager's namespace (R-MGR-3)."""
    election = LeaderElection(resource_name="mine", resource_namespace="elsewhere", lease_duration=Duration(30))
    settings = election_settings(Configuration(leader_election=election), "lws-system")
    assert settings.lease == ObjectKey("lws-system", "mine")
    assert (settings.lease_duration, settings.renew_deadline, settings.retry_period) == (30.0, 10.0, 2.0)


def test_every_process_has_its_own_identity() -> None:
    identities = {election_settings(Configuration(), "a").identity for _ in range(3)}
    assert len(identities) == 3


def test_tls_settings_are_converted_for_openssl() -> None:
    """TLS settings are converted to OpenSSL settings (R-CFG-2)."""
    assert tls_settings(TLS()).minimum_version is ssl.TLSVersion.TLSv1_2
    assert tls_settings(TLS(min_version="VersionTLS13")).minimum_version is ssl.TLSVersion.TLSv1_3
    suites = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256")
    assert tls_settings(TLS(cipher_suites=suites)).ciphers == "ECDHE-RSA-AES128-GCM-SHA256"
