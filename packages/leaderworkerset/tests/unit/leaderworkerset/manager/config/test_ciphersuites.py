"""Tests cipher suites with their names in Go."""

from leaderworkerset.manager.config import ciphersuites


def test_cipher_suites_have_openssl_names() -> None:
    """TLS 1.3 suites are always enabled (R-CFG-2)."""
    names = ("TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256")

    assert ciphersuites.openssl_names(names) == "AES128-GCM-SHA256"
    assert ciphersuites.openssl_names(names[:1]) == ""
