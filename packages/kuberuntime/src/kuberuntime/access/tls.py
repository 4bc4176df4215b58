"""Creates TLS contexts from PEM data in memory."""

import os
import ssl
import tempfile
from pathlib import Path

from kuberuntime.access.access import TLS
from kuberuntime.access.credentials import Credentials
from kuberuntime.errors import ConfigError


def build_context(tls: TLS, credentials: Credentials) -> ssl.SSLContext:
    """Build a TLS context that verifies the server and presents the client certificate."""
    context = _build_ssl_context(tls)
    # Many cluster CAs do not have the key identifiers that Python 3.13 requires. Go does not require them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credentials.certificate:
        _load_client_certificate(context, credentials)
    return context


def _build_ssl_context(tls: TLS) -> ssl.SSLContext:
    if tls.insecure or not tls.authority:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=tls.authority.decode())
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{tls.entry}: invalid PEM certificate: {_reason(error)}") from error


def _load_client_certificate(context: ssl.SSLContext, credentials: Credentials) -> None:
    """Load the certificate and key from a temporary file (mode 0600), because Python's ssl reads only files."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(credentials.certificate.rstrip() + b"\n" + credentials.key)
        context.load_cert_chain(path, password=lambda: b"")
    except ssl.SSLError as error:
        raise ConfigError(
            f"the client certificate and key do not match, or they are not PEM without a passphrase: {_reason(error)}"
        ) from error
    finally:
        Path(path).unlink()


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
