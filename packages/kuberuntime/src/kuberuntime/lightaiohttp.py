"""Imports aiohttp without the system's certificates, which it would read twice, for TLS contexts that are never used.

Reading them takes a seventh of a command's time before its first request. Every connection has its own context
(`kuberuntime/client/http.py`); a connection without one would trust no certificate, and fail.
"""

import ssl
import sys


def load() -> None:
    """Import aiohttp so that its own contexts trust no certificate; later contexts are not affected."""
    if "aiohttp" in sys.modules:
        return
    ssl.SSLContext.set_default_verify_paths = _read_nothing  # type: ignore[method-assign,assignment]
    try:
        import aiohttp  # noqa: F401 - only loaded
    finally:
        del ssl.SSLContext.set_default_verify_paths  # restores the method of the base class


def _read_nothing(_: ssl.SSLContext) -> None:
    """Replace the method that reads the system's certificates."""
