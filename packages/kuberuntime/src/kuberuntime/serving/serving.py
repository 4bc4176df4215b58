"""Serves HTTP with replaceable TLS certificates, a listener, and probes.

Only HTTP/1.1 is served (R-MGR-5), because aiohttp does not support other versions. The servers announce this with
ALPN.
"""

import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

from aiohttp import web
from msgspec import Struct

from kuberuntime.errors import ConfigError
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.limitlistener import ConnectionLimits, LimitListener, connection_limits
from kuberuntime.serving.protocollogs import protocol_logger

SHUTDOWN_SECONDS: Final = 3.0
"""The time in seconds for requests in progress to complete when the server stops."""


CONNECTIONS: Final = 64
SHARE: Final = 1 / 16
"""The limits for probes and metrics.

Each limit has a connection count and a fraction of the file descriptors of the process.
"""


class TLSSettings(Struct, frozen=True):
    """The minimum TLS version, and the TLS 1.2 cipher suites in OpenSSL format (empty for the default)."""

    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: str = ""


def server_context(chain: bytes, settings: TLSSettings | None = None) -> ssl.SSLContext:
    """Build a server context. `chain` contains the certificate and the private key in PEM format."""
    settings = settings or TLSSettings()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = settings.minimum_version
    if settings.ciphers:
        context.set_ciphers(settings.ciphers)
    context.set_alpn_protocols(["http/1.1"])
    _load_chain(context, chain)
    return context


def replace_chain(context: ssl.SSLContext, chain: bytes) -> None:
    """Use a different certificate for new connections.

    A context keeps one certificate for each key type, and might still serve the old one. So the new certificate has a
    context of its own. Call this in the serving thread, because a handshake must not find the callback half set.
    """
    replacement = server_context(chain)

    def select(connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = replacement

    context.sni_callback = select


def _load_chain(context: ssl.SSLContext, chain: bytes) -> None:
    """Load a certificate. The key is temporarily in a private directory, because `ssl` reads only files."""
    with tempfile.TemporaryDirectory(prefix="tls-") as directory:
        path = Path(directory) / "tls.pem"
        path.touch(mode=0o600)
        path.write_bytes(chain)
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise ConfigError(f"the certificate and key do not match, or they are not PEM: {error}") from error


class Listener:
    """Serves an application. Plain HTTP is used if there is no TLS context."""

    def __init__(
        self,
        application: web.Application,
        address: Address,
        context: ssl.SSLContext | None = None,
        *,
        name: str = "server",
        limits: ConnectionLimits | None = None,
    ) -> None:
        self._acceptor = LimitListener(
            limits or connection_limits(CONNECTIONS, share=SHARE), name=name, context=context
        )
        application.middlewares.insert(0, self._acceptor.middleware)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=SHUTDOWN_SECONDS,
            lingering_time=0.0,  # requests to these paths have no body
            logger=protocol_logger(name),
        )
        self._address = address
        self.port = address.port

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await self._acceptor.serve(self._runner, self._address.host, self._address.port)
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(f"cannot listen on {self._address}: {error.strerror}") from error
        self.port = self._acceptor.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._acceptor.stop()
        await self._runner.cleanup()
        await self._acceptor.close()


Check: TypeAlias = Callable[[], bool]


def application(*, liveness: str, readiness: str, checks: Mapping[str, Check]) -> web.Application:
    """Build the application for probes. `liveness` and `readiness` are the paths.

    This process is live if its event loop responds, and ready if every check passes. The response names the checks that
    failed, so that `kubectl describe pod` shows them.
    """

    async def alive(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_request: web.Request) -> web.Response:
        missing = [name for name, passes in checks.items() if not passes()]
        if missing:
            return web.Response(status=503, text=f"not ready: {', '.join(missing)}")
        return web.Response(text="ok")

    served = web.Application()
    served.add_routes([web.get(path_of(liveness), alive), web.get(path_of(readiness), ready)])
    return served


def path_of(name: str) -> str:
    """Return the path of an endpoint with a leading slash.

    >>> path_of("readyz"), path_of("/healthz")
    ('/readyz', '/healthz')
    """
    return f"/{name.lstrip('/')}"
