"""Tests the CA and its certificates."""

import ipaddress
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificates import CertificateError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
AUTHORITY = certificates.create_authority(NOW)


def test_authority_can_only_sign() -> None:
    """The CA has the expected names and is valid for ten years (R-CERT-1, R-OP-50)."""
    parsed = x509.load_pem_x509_certificate(AUTHORITY.certificate)
    assert parsed.subject.rfc4514_string() == "CN=lws-ca,O=lws"
    assert parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert parsed.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert certificates.expires_at(AUTHORITY.certificate) == NOW + timedelta(days=3650)


def test_serving_certificate_is_valid_for_its_hosts() -> None:
    serving = certificates.issue(AUTHORITY, ["lws.ns.svc", "127.0.0.1", "::1"], NOW)
    parsed = x509.load_pem_x509_certificate(serving.certificate)
    parsed.verify_directly_issued_by(x509.load_pem_x509_certificate(AUTHORITY.certificate))
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["lws.ns.svc"]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
    ]
    assert certificates.expires_at(serving.certificate) == NOW + timedelta(days=365)
    assert parsed.not_valid_before_utc < NOW


def test_certificates_are_valid_for_clocks_that_are_behind() -> None:
    serving = certificates.issue(AUTHORITY, ["lws.ns.svc"], NOW)
    for certificate in (AUTHORITY.certificate, serving.certificate):
        assert certificates.valid_from(certificate) == NOW - timedelta(days=3650)


def test_longest_namespace_name_gets_a_certificate() -> None:
    host = f"lws-webhook-service.{'n' * 63}.svc"
    serving = certificates.issue(AUTHORITY, [host], NOW)
    names = x509.load_pem_x509_certificate(serving.certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == [host]


def test_validity_can_be_shorter() -> None:
    serving = certificates.issue(AUTHORITY, ["a"], NOW, validity=timedelta(hours=1))
    assert certificates.expires_at(serving.certificate) == NOW + timedelta(hours=1)


def test_invalid_certificate_raises_an_error() -> None:
    with pytest.raises(CertificateError, match="not a PEM certificate"):
        certificates.expires_at(b"hello")


def test_invalid_key_raises_an_error() -> None:
    with pytest.raises(CertificateError, match="not an unencrypted PEM private key"):
        certificates.issue(certificates.Certificate(AUTHORITY.certificate, b"hello"), ["a"], NOW)


def test_authority_with_an_unsupported_key_raises_an_error() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with pytest.raises(CertificateError, match="must be an RSA key or an elliptic curve key"):
        certificates.issue(certificates.Certificate(AUTHORITY.certificate, pem), ["a"], NOW)


@pytest.mark.parametrize("algorithm", ["ec", "rsa"])
def test_rsa_and_elliptic_keys_can_sign_each_other(algorithm: certificates.Algorithm) -> None:
    authority = certificates.create_authority(NOW, algorithm=algorithm)
    for other in ("ec", "rsa"):
        serving = certificates.issue(authority, ["a"], NOW, algorithm="rsa" if other == "rsa" else "ec")
        assert certificates.is_issued_by(serving.certificate, authority.certificate)
        assert certificates.matches_key(serving)
        assert not certificates.matches_key(certificates.Certificate(serving.certificate, authority.key))


def test_only_an_authority_can_sign() -> None:
    serving = certificates.issue(AUTHORITY, ["a"], NOW)
    assert certificates.is_authority(AUTHORITY.certificate)
    assert not certificates.is_authority(serving.certificate)
    assert not certificates.is_issued_by(AUTHORITY.certificate, serving.certificate)


def test_bundle_is_split_into_its_certificates() -> None:
    serving = certificates.issue(AUTHORITY, ["a"], NOW)
    both = AUTHORITY.certificate + serving.certificate
    assert certificates.split(both) == (AUTHORITY.certificate, serving.certificate)
    assert certificates.split(b"junk") == ()
    damaged = both.replace(AUTHORITY.certificate[40:60], b"x" * 20)
    assert certificates.split(damaged) == (serving.certificate,)


@cache
def rsa_authority() -> certificates.Certificate:
    """Return a CA with RSA keys, which are slow to generate and to verify."""
    return certificates.create_authority(NOW, algorithm="rsa")


@cache
def numbers_of(pem: bytes) -> rsa.RSAPrivateNumbers:
    key = serialization.load_pem_private_key(pem, password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.private_numbers()


def damaged(pem: bytes, **changed: Callable[[int], int]) -> bytes:
    """Return the RSA key with changed numbers, which make it invalid."""
    numbers = numbers_of(pem)
    fields = {name: getattr(numbers, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}
    fields |= {name: change(fields[name]) for name, change in changed.items()}
    broken = rsa.RSAPrivateNumbers(**fields, public_numbers=numbers.public_numbers)
    return broken.private_key(unsafe_skip_rsa_key_validation=True).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def test_changed_key_does_not_match() -> None:
    good = rsa_authority()
    other = certificates.create_authority(NOW, algorithm="rsa")
    assert certificates.matches_key(good)
    assert not certificates.matches_key(certificates.Certificate(good.certificate, other.key))
    assert not certificates.matches_key(certificates.Certificate(good.certificate, AUTHORITY.key))
    wrong = damaged(good.key, d=lambda d: d + 2, dmp1=lambda n: n + 2, dmq1=lambda n: n + 2)
    assert not certificates.matches_key(certificates.Certificate(good.certificate, wrong))


@pytest.mark.parametrize("field", ["p", "q", "d", "dmp1", "dmq1", "iqmp"])
def test_damaged_key_never_terminates_the_process(field: str) -> None:
    good = rsa_authority()
    changes: list[Callable[[int], int]] = [lambda n: n - 1, lambda n: n + 2, lambda _: 0, lambda _: 1]
    for change in changes:
        try:
            key = damaged(good.key, **{field: change})
        except ValueError:
            continue
        try:
            certificates.matches_key(certificates.Certificate(good.certificate, key))
        except CertificateError:
            continue


@pytest.mark.slow
def test_key_check_is_cheaper_than_a_primality_check() -> None:
    pair = rsa_authority()

    def seconds(call: Callable[[], object]) -> float:
        def once() -> float:
            began = time.thread_time()
            call()
            return time.thread_time() - began

        return min(once() for _ in range(5))

    checked = seconds(lambda: serialization.load_pem_private_key(pair.key, password=None))
    assert seconds(lambda: certificates.matches_key(pair)) < checked / 2
