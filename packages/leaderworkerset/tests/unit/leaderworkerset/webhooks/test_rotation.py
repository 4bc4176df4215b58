"""Tests that certificates are renewed in time, and that certificates in use remain trusted (R-CERT-1)."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderworkerset.webhooks import certificates, rotation
from leaderworkerset.webhooks.certificates import Certificate
from leaderworkerset.webhooks.certificatesubprocess import RotationStep
from leaderworkerset.webhooks.rotation import LOOKAHEAD, CertificateSecret

pytestmark = pytest.mark.slow

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOSTS = ("lws-webhook-service.lws-system.svc",)
AUTHORITY = certificates.create_authority(NOW)
SERVING = certificates.issue(AUTHORITY, HOSTS, NOW)
GOOD = CertificateSecret(AUTHORITY, SERVING)
EMPTY = CertificateSecret(Certificate(b"", b""), Certificate(b"", b""))
STRANGER = certificates.create_authority(NOW)
SHORT = LOOKAHEAD - timedelta(days=1)


@pytest.mark.parametrize(
    ("material", "step"),
    [
        (GOOD, RotationStep.KEEP),
        (EMPTY, RotationStep.RENEW_AUTHORITY),
        (CertificateSecret(AUTHORITY, EMPTY.serving), RotationStep.RENEW_CERTIFICATE),
        (
            CertificateSecret(AUTHORITY, certificates.issue(AUTHORITY, HOSTS, NOW, validity=SHORT)),
            RotationStep.RENEW_CERTIFICATE,
        ),
        (CertificateSecret(certificates.create_authority(NOW, validity=SHORT), SERVING), RotationStep.RENEW_AUTHORITY),
        (CertificateSecret(Certificate(AUTHORITY.certificate, STRANGER.key), SERVING), RotationStep.RENEW_AUTHORITY),
        (CertificateSecret(Certificate(AUTHORITY.certificate, b"junk"), SERVING), RotationStep.RENEW_AUTHORITY),
        (CertificateSecret(SERVING, SERVING), RotationStep.RENEW_AUTHORITY),
        (CertificateSecret(STRANGER, SERVING), RotationStep.RENEW_CERTIFICATE),
        (CertificateSecret(AUTHORITY, Certificate(SERVING.certificate, STRANGER.key)), RotationStep.RENEW_CERTIFICATE),
        (
            CertificateSecret(AUTHORITY, certificates.issue(AUTHORITY, ["elsewhere"], NOW)),
            RotationStep.RENEW_CERTIFICATE,
        ),
    ],
    ids=[
        "good",
        "empty",
        "no certificate",
        "certificate ends soon",
        "authority ends soon",
        "authority with another key",
        "authority with junk for a key",
        "an authority that may not sign",
        "signed by another",
        "certificate with another key",
        "for another host",
    ],
)
def test_rotation_step_follows_from_the_material(material: CertificateSecret, step: RotationStep) -> None:
    assert rotation.decide(material, HOSTS, NOW) is step


def test_certificate_of_the_future_is_renewed() -> None:
    """At its creation, the clock was incorrect by decades. A clock that was a year ahead is tolerated."""
    assert rotation.decide(GOOD, HOSTS, NOW - timedelta(days=400)) is RotationStep.KEEP
    assert rotation.decide(GOOD, HOSTS, NOW - timedelta(days=3651)) is RotationStep.RENEW_AUTHORITY


def test_renewed_material_is_valid_in_the_format_of_go() -> None:
    renewed = rotation.renew(EMPTY, RotationStep.RENEW_AUTHORITY, HOSTS, NOW)
    assert rotation.decide(renewed, HOSTS, NOW) is RotationStep.KEEP
    assert renewed.authority.key.startswith(b"-----BEGIN RSA PRIVATE KEY-----"), "Go reads no other authority"
    authority = serialization.load_pem_private_key(renewed.authority.key, None)
    assert isinstance(authority, rsa.RSAPrivateKey)
    assert authority.key_size == 2048
    serving = serialization.load_pem_private_key(renewed.serving.key, None)
    assert isinstance(serving, ec.EllipticCurvePrivateKey)
    assert isinstance(serving.curve, ec.SECP256R1)
    parsed = x509.load_pem_x509_certificate(renewed.serving.certificate)
    assert parsed.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value == HOSTS[0]
    assert certificates.host_names(renewed.serving.certificate) == HOSTS
    assert certificates.expires_at(renewed.serving.certificate) == NOW + timedelta(days=365)
    assert certificates.expires_at(renewed.authority.certificate) == NOW + timedelta(days=3650)
    assert rotation.due_at(renewed) == NOW + timedelta(days=365) - LOOKAHEAD


def test_renewed_certificate_has_the_same_authority() -> None:
    renewed = rotation.renew(CertificateSecret(AUTHORITY, EMPTY.serving), RotationStep.RENEW_CERTIFICATE, HOSTS, NOW)
    assert renewed.authority == AUTHORITY
    assert rotation.decide(renewed, HOSTS, NOW) is RotationStep.KEEP


def test_new_authority_is_bundled_with_the_old_one() -> None:
    old = certificates.create_authority(NOW, validity=SHORT)
    renewed = rotation.renew(CertificateSecret(old, SERVING), RotationStep.RENEW_AUTHORITY, HOSTS, NOW)
    first, second = certificates.split(renewed.bundle)
    assert certificates.is_issued_by(renewed.serving.certificate, first)
    assert second == old.certificate
    later = NOW + timedelta(days=3650)
    again = rotation.renew(renewed, RotationStep.RENEW_AUTHORITY, HOSTS, later - timedelta(days=1))
    assert certificates.split(again.bundle)[1:] == (first,)


def test_keep_step_changes_nothing() -> None:
    assert rotation.renew(GOOD, RotationStep.KEEP, HOSTS, NOW) is GOOD


def test_secret_round_trips_and_invalid_data_is_ignored() -> None:
    assert rotation.read(rotation.write(GOOD)) == GOOD
    assert rotation.read({"ca.crt": "no base64!", "other": "x"}) == EMPTY


@settings(max_examples=25, deadline=None)
@given(days=st.lists(st.integers(0, 400), min_size=1, max_size=8))
def test_served_certificate_is_trusted_at_any_time(days: list[int]) -> None:
    """Any two successive bundles contain the CA of the certificates that may still be served."""
    now, material = NOW, GOOD
    for elapsed in days:
        now += timedelta(days=elapsed)
        step = rotation.decide(material, HOSTS, now)
        renewed = _renew_fast(material, step, now)
        trusted = certificates.split(renewed.bundle)
        assert any(certificates.is_issued_by(renewed.serving.certificate, one) for one in trusted)
        if certificates.expires_at(material.authority.certificate) > now:
            assert certificates.split(material.bundle)[0] in trusted
        assert rotation.decide(renewed, HOSTS, now) is RotationStep.KEEP
        material = renewed


def _renew_fast(material: CertificateSecret, step: RotationStep, now: datetime) -> CertificateSecret:
    """Renew certificates. If the CA is unchanged, generate fast keys."""
    if step is RotationStep.RENEW_CERTIFICATE:
        return CertificateSecret(material.authority, certificates.issue(material.authority, HOSTS, now))
    return rotation.renew(material, step, HOSTS, now)


def _of_go(key: rsa.RSAPrivateKey) -> Certificate:
    """Return a CA of Go's cert-controller with serial number 0, which libraries no longer create."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lws-ca")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=3650))
    made = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = made.sign(key, hashes.SHA256())
    content = signed.tbs_certificate_bytes.replace(b"\x02\x01\x01", b"\x02\x01\x00", 1)
    signature = key.sign(content, padding.PKCS1v15(), hashes.SHA256())
    der = signed.public_bytes(serialization.Encoding.DER)
    der = der.replace(signed.tbs_certificate_bytes, content).replace(signed.signature, signature)
    form, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    return Certificate(
        ssl.DER_cert_to_PEM_cert(der).encode(), key.private_bytes(serialization.Encoding.PEM, form, plain)
    )


@pytest.mark.filterwarnings("ignore:.*serial number")
def test_differs_from_upstream_serial_zero_is_renewed() -> None:
    """A CA certificate with the serial number 0 is renewed, because libraries will reject this serial number.

    Certificates that Go managers issued remain trusted for one day.
    """
    old = _of_go(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    served = certificates.issue(old, HOSTS, NOW)
    assert rotation.decide(CertificateSecret(old, served), HOSTS, NOW) is RotationStep.RENEW_AUTHORITY
    renewed = rotation.renew(CertificateSecret(old, served), RotationStep.RENEW_AUTHORITY, HOSTS, NOW)
    first, second = certificates.split(renewed.bundle)
    assert certificates.is_issued_by(renewed.serving.certificate, first)
    assert certificates.is_issued_by(served.certificate, second)
    assert rotation.decide(renewed, HOSTS, NOW + timedelta(hours=23)) is RotationStep.KEEP
    later = NOW + timedelta(days=1)
    assert rotation.decide(renewed, HOSTS, later) is RotationStep.DROP_AUTHORITIES
    alone = rotation.renew(renewed, RotationStep.DROP_AUTHORITIES, HOSTS, later)
    assert (certificates.split(alone.bundle), alone.serving) == ((first,), renewed.serving)
    assert rotation.decide(alone, HOSTS, later) is RotationStep.KEEP
