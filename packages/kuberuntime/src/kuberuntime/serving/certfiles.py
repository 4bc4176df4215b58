"""Watches certificate files (`tls.crt`, `tls.key` in a directory), so that renewals do not require a restart.

The files are compared every few seconds. An incomplete renewal (a certificate without its key) is logged and retried
later. In the meantime, the old pair is served.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import structlog

from kuberuntime.errors import ConfigError
from kuberuntime.serving.serving import server_context

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
INTERVAL: Final = 5.0
"""The interval in seconds between two reads."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CertificateObserver(Protocol):
    """Observes certificate reads."""

    def read_certificate(self, *, failed: bool) -> None:
        """Record a read."""


class CertificateFiles:
    """Reads the certificate and private key from a directory as one PEM document."""

    def __init__(self, directory: Path, observer: CertificateObserver) -> None:
        self._directory = directory
        self._observer = observer
        self._chain = b""

    @property
    def exist(self) -> bool:
        """Return whether both files exist."""
        return (self._directory / CERTIFICATE).exists() and (self._directory / KEY).exists()

    def read(self) -> bytes:
        """Read the certificate and key, and validate them if they changed.

        Raise a `ConfigError` that contains the file path.
        """
        try:
            chain = b"".join((self._directory / name).read_bytes().rstrip() + b"\n" for name in (CERTIFICATE, KEY))
            if chain != self._chain:
                server_context(chain)
        except OSError as error:
            self._observer.read_certificate(failed=True)
            raise ConfigError(f"{error.filename}: cannot read the file: {error.strerror}") from error
        except ConfigError as error:
            self._observer.read_certificate(failed=True)
            raise ConfigError(f"{self._directory}: {error}") from error
        self._observer.read_certificate(failed=False)
        return chain

    async def follow(self, use: Callable[[bytes], Awaitable[None]]) -> None:
        """Call `use` with the first certificate and with each changed certificate, until cancelled."""
        last_error = ""
        while True:
            try:
                chain = self.read()
                if chain != self._chain:
                    await use(chain)
                self._chain, last_error = chain, ""
            except ConfigError as error:
                if str(error) != last_error:
                    last_error = str(error)
                    log.warning("the certificate is invalid, retrying", error=last_error)
            await asyncio.sleep(INTERVAL)
