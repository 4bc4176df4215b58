"""Creates the keys and certificates of one cluster, and a kubeconfig for each client of its API server."""

import base64
import datetime as dt
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BUNDLE: Final = "ca.crt"
"""The file name of the CA certificate."""

VALID: Final = dt.timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Authority:
    """A directory with a CA and the certificates that the CA signed."""

    directory: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def bundle(self) -> Path:
        """Return the file that contains the certificate of this CA."""
        return self.directory / BUNDLE

    def issue(self, name: str, user: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> None:
        """Write the key and the certificate of a user, who is also a server if there are hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        draft = (
            _draft([*subject, x509.NameAttribute(NameOID.COMMON_NAME, user)], key)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if hosts:
            draft = draft.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        _write(self.directory, name, key, draft.sign(self.key, hashes.SHA256()))

    def kubeconfig(self, name: str, server: str) -> Path:
        """Write the kubeconfig of a user as JSON, which is valid YAML. Return its path."""
        user = {
            "client-certificate-data": _text(self.directory / f"{name}.crt"),
            "client-key-data": _text(self.directory / f"{name}.key"),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "node", "cluster": {"server": server, "certificate-authority-data": _text(self.bundle)}}
            ],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": name}}],
            "current-context": "node",
        }
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(json.dumps(content))
        path.chmod(0o600)
        return path


def make_authority(directory: Path) -> Authority:
    """Write a new CA to a directory."""
    directory.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = [x509.NameAttribute(NameOID.COMMON_NAME, "node-tests")]
    certificate = (
        _draft(name, key)
        .issuer_name(x509.Name(name))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(directory, "ca", key, certificate)
    return Authority(directory, key, certificate)


def _draft(subject: list["x509.NameAttribute[str]"], key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + VALID)
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write(directory: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (directory / f"{name}.key").write_bytes(pem)
    (directory / f"{name}.key").chmod(0o600)
    (directory / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _text(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
