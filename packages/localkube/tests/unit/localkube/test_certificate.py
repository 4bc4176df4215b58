"""Tests the certificate of the embedded server."""

from datetime import UTC, datetime, timedelta

from cryptography import x509

from localkube.certificate import build_certificate, server_context

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_certificate_is_for_loopback_names_only() -> None:
    pem, _ = build_certificate(NOW)
    certificate = x509.load_pem_x509_certificate(pem)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert certificate.not_valid_before_utc < NOW < certificate.not_valid_after_utc


def test_certificate_is_valid_when_the_clock_changes() -> None:
    certificate = x509.load_pem_x509_certificate(build_certificate(NOW)[0])
    far = timedelta(days=3000)
    assert certificate.not_valid_before_utc < NOW - far < NOW + far < certificate.not_valid_after_utc


def test_every_server_has_its_own_certificate() -> None:
    first, second = build_certificate(NOW), build_certificate(NOW)
    assert first[1] != second[1]
    assert server_context(*first).get_ca_certs() == []
