"""Creates the CA of the webhook server and the certificates that it issues, and checks their validity.

All functions take and return PEM bytes, so that secrets and files can hold them. Keys are of the curve P-256, which is
generated in milliseconds and known to every API server. Or they are RSA with 2048 bits, in the form that the Go manager
reads (R-CERT-1), for the CA that both may use. No function reads a clock: `now` is a parameter.
"""

import ipaddress
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from cryptography import x509
from cryptography.exceptions import InternalError, InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

AUTHORITY_NAME = "lws-ca"
LONGEST_COMMON_NAME: Final = 64
"""The maximum length of a common name. Clients use the alternative names, which have no such limit."""

ORGANIZATION = "lws"
AUTHORITY_VALIDITY = timedelta(days=3650)
SERVING_VALIDITY = timedelta(days=365)
RSA_BITS = 2048
SKEW = timedelta(days=3650)
"""The time before its creation at which a certificate becomes valid, because server clocks can differ."""

PEM_BLOCK: Final = re.compile(b"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\r?\n?", re.DOTALL)

SAMPLE: Final = b"a text to sign"
HASH: Final = hashes.SHA256()
PADDING: Final = padding.PKCS1v15()

Algorithm: TypeAlias = Literal["ec", "rsa"]
PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class CertificateError(ValueError):
    """The PEM data is invalid."""


class Certificate(Struct, frozen=True):
    """A certificate and its private key in PEM format."""

    certificate: bytes
    key: bytes

    @property
    def chain(self) -> bytes:
        """Return the certificate and the key in one PEM document for a TLS server."""
        return self.certificate.rstrip() + b"\n" + self.key


def create_authority(
    now: datetime, *, validity: timedelta = AUTHORITY_VALIDITY, algorithm: Algorithm = "ec"
) -> Certificate:
    """Create a CA."""
    key = _generate_key(algorithm)
    name = _name(AUTHORITY_NAME)
    builder = _builder(name, name, key.public_key(), now, validity)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return _sign(builder, key, key)


def issue(
    authority: Certificate,
    hosts: Sequence[str],
    now: datetime,
    *,
    validity: timedelta = SERVING_VALIDITY,
    algorithm: Algorithm = "ec",
) -> Certificate:
    """Issue a serving certificate for host names and addresses.

    The common name is the first host name, if possible.
    """
    signer = _private_key(authority.key)
    issuer = _certificate(authority.certificate)
    key = _generate_key(algorithm)
    builder = _builder(_name(hosts[0][:LONGEST_COMMON_NAME]), issuer.subject, key.public_key(), now, validity)
    builder = builder.add_extension(
        x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
    )
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return _sign(builder.add_extension(identifier, critical=False), key, signer)


def expires_at(certificate: bytes) -> datetime:
    """Return the UTC time at which a PEM certificate expires."""
    return _certificate(certificate).not_valid_after_utc


def valid_from(certificate: bytes) -> datetime:
    """Return the UTC time at which a PEM certificate becomes valid."""
    return _certificate(certificate).not_valid_before_utc


def matches_key(pair: Certificate) -> bool:
    """Return whether the certificate verifies a signature of the key."""
    private, public = _private_key(pair.key), _certificate(pair.certificate).public_key()
    try:
        if isinstance(private, rsa.RSAPrivateKey) and isinstance(public, rsa.RSAPublicKey):
            public.verify(private.sign(SAMPLE, PADDING, HASH), SAMPLE, PADDING, HASH)
        elif isinstance(private, ec.EllipticCurvePrivateKey) and isinstance(public, ec.EllipticCurvePublicKey):
            public.verify(private.sign(SAMPLE, ec.ECDSA(HASH)), SAMPLE, ec.ECDSA(HASH))
        else:
            return False
    except (ValueError, InvalidSignature, InternalError):  # a damaged key produces invalid signatures or none
        return False
    return True


def is_authority(certificate: bytes) -> bool:
    """Return whether the certificate is a CA certificate."""
    try:
        constraints = _certificate(certificate).extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return constraints.value.ca


def is_issued_by(certificate: bytes, authority: bytes) -> bool:
    """Return whether the CA signed the certificate."""
    try:
        _certificate(certificate).verify_directly_issued_by(_certificate(authority))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def host_names(certificate: bytes) -> tuple[str, ...]:
    """Return the host names in the certificate."""
    try:
        names = _certificate(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.value.get_values_for_type(x509.DNSName))


def has_valid_serial(certificate: bytes) -> bool:
    """Return whether the serial number is positive. Go's cert-controller assigned the invalid number 0 to CAs."""
    return _certificate(certificate).serial_number > 0


def split(bundle: bytes) -> tuple[bytes, ...]:
    """Return the certificates in a bundle in order, each as PEM. Invalid certificates are omitted."""
    certificates = list[bytes]()
    for block in PEM_BLOCK.findall(bundle):
        with suppress(CertificateError):
            certificates.append(_certificate(block).public_bytes(serialization.Encoding.PEM))
    return tuple(certificates)


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PublicKey, now: datetime, validity: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + validity)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _sign(builder: x509.CertificateBuilder, key: PrivateKey, signer: PrivateKey) -> Certificate:
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    form = serialization.PrivateFormat.TraditionalOpenSSL if is_rsa else serialization.PrivateFormat.PKCS8
    return Certificate(
        certificate=builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()),
    )


def _generate_key(algorithm: Algorithm) -> PrivateKey:
    if algorithm == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    return ec.generate_private_key(ec.SECP256R1())


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError("not a PEM certificate") from error


def _private_key(pem: bytes) -> PrivateKey:
    """Load a key without a primality test, which would block all threads for 40 ms."""
    try:
        key = serialization.load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError) as error:
        raise CertificateError("not an unencrypted PEM private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise CertificateError("the key must be an RSA key or an elliptic curve key")
    return key
