"""Creates self-signed certificates for loopback names, for the API server and stubs of an embedded cluster.

The validity extends equally into the past and the future. So clients can connect even if the clock is set back, or was
ahead when the cluster first started. An early start is harmless, because no other process has the key.
"""

import ipaddress
import ssl
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME: Final = timedelta(days=3650)


def build_certificate(now: datetime, name: str = "embedded-apiserver") -> tuple[bytes, bytes]:
    """Create a key and its certificate. Return the certificate and the key as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")),
        x509.IPAddress(ipaddress.IPv6Address("::1")),
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFETIME)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def server_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Build a server TLS context with the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # ssl reads keys only from files, created with mode 0600
        Path(file.name).write_bytes(key + certificate)
        context.load_cert_chain(file.name)
    return context
