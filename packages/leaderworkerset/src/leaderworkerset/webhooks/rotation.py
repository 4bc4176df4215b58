"""Determines when and how a certificate is renewed, based on the data of a Secret (R-CERT-1).

Input: the content of the secret, the host names and the time. Output: the new content. No connection fails during a
renewal, because trust is changed before the served certificate:

- The serving certificate is renewed under the same authority, which all clients trust already.
- A new authority is put before the old one in `ca.crt`. The bundle goes into the webhook configurations; a replica that
  still serves its old certificate is trusted through the old authority until that ends.

Certificates from the first years of the Go manager have the serial number 0, which libraries will reject. They are
renewed, and their CA remains trusted for one more day, until replicas of the Go manager have exited.

The Go manager can continue with this secret: it has the same keys, and an authority of RSA, since the Go manager reads no
other. The serving certificate is ECDSA, whose handshakes cost a tenth; one of the Go manager stays until its renewal.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificates import Certificate, CertificateError
from leaderworkerset.webhooks.certificatesubprocess import AUTHORITY_CERTIFICATE, RotationStep

LOOKAHEAD: Final = timedelta(days=90)
"""The time before its expiration at which a certificate is renewed."""

FAREWELL: Final = timedelta(days=1)
"""The time for which a CA with an invalid serial number remains trusted after its replacement."""

AUTHORITY_KEY: Final = "ca.key"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"


class CertificateSecret(Struct, frozen=True):
    """The content of a Secret. The first CA in `authority` signs certificates, and the other CAs remain trusted."""

    authority: Certificate
    serving: Certificate

    @property
    def bundle(self) -> bytes:
        """Return all trusted CAs."""
        return self.authority.certificate


def read(data: Mapping[str, str]) -> CertificateSecret:
    """Read the data of a Secret. Missing or invalid base64 values are treated as empty, and are renewed."""
    parts = {name: _decode(data.get(name) or "") for name in (AUTHORITY_CERTIFICATE, AUTHORITY_KEY, CERTIFICATE, KEY)}
    return CertificateSecret(
        Certificate(parts[AUTHORITY_CERTIFICATE], parts[AUTHORITY_KEY]), Certificate(parts[CERTIFICATE], parts[KEY])
    )


def write(material: CertificateSecret) -> dict[str, str]:
    """Return the Secret data."""
    parts = {
        AUTHORITY_CERTIFICATE: material.authority.certificate,
        AUTHORITY_KEY: material.authority.key,
        CERTIFICATE: material.serving.certificate,
        KEY: material.serving.key,
    }
    return {name: base64.b64encode(value).decode() for name, value in parts.items()}


def decide(material: CertificateSecret, hosts: Sequence[str], now: datetime) -> RotationStep:
    """Determine what must be renewed."""
    try:
        if not _is_valid_ca(material.authority, now):
            return RotationStep.RENEW_AUTHORITY
    except CertificateError:
        return RotationStep.RENEW_AUTHORITY
    try:
        is_good = _is_valid_serving_certificate(material, hosts, now)
    except CertificateError:
        return RotationStep.RENEW_CERTIFICATE
    if not is_good:
        return RotationStep.RENEW_CERTIFICATE
    return RotationStep.DROP_AUTHORITIES if _trusts_too_many(material, now) else RotationStep.KEEP


def renew(material: CertificateSecret, step: RotationStep, hosts: Sequence[str], now: datetime) -> CertificateSecret:
    """Return the Secret content after `step`."""
    if step is RotationStep.KEEP:
        return material
    authority = material.authority
    if step is RotationStep.DROP_AUTHORITIES:
        kept = filter(certificates.has_valid_serial, certificates.split(authority.certificate))
        return CertificateSecret(Certificate(b"".join(kept), authority.key), material.serving)
    if step is RotationStep.RENEW_AUTHORITY:
        created = certificates.create_authority(now, algorithm="rsa")
        trusted = [
            certificate
            for certificate in certificates.split(authority.certificate)
            if (certificates.is_authority(certificate) and certificates.expires_at(certificate) > now)
        ]
        authority = Certificate(b"".join((created.certificate, *trusted)), created.key)
    return CertificateSecret(authority, certificates.issue(authority, hosts, now))


def due_at(material: CertificateSecret) -> datetime:
    """Return the time of the next renewal for valid certificates."""
    ends = (material.authority.certificate, material.serving.certificate)
    return min(certificates.expires_at(end) for end in ends) - LOOKAHEAD


def _is_valid_ca(authority: Certificate, now: datetime) -> bool:
    return (
        certificates.matches_key(authority)
        and certificates.is_authority(authority.certificate)
        and certificates.has_valid_serial(authority.certificate)
        and _is_within_validity(authority.certificate, now)
    )


def _is_valid_serving_certificate(material: CertificateSecret, hosts: Sequence[str], now: datetime) -> bool:
    serving = material.serving
    return (
        certificates.matches_key(serving)
        and certificates.is_issued_by(serving.certificate, material.authority.certificate)
        and certificates.has_valid_serial(serving.certificate)
        and set(hosts) <= set(certificates.host_names(serving.certificate))
        and _is_within_validity(serving.certificate, now)
    )


def _trusts_too_many(material: CertificateSecret, now: datetime) -> bool:
    """Return whether a CA with an invalid serial number can be removed."""
    signer, *others = certificates.split(material.authority.certificate)
    signs_since = certificates.valid_from(signer) + certificates.SKEW
    return now >= signs_since + FAREWELL and not all(map(certificates.has_valid_serial, others))


def _is_within_validity(certificate: bytes, now: datetime) -> bool:
    return certificates.valid_from(certificate) <= now < certificates.expires_at(certificate) - LOOKAHEAD


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
