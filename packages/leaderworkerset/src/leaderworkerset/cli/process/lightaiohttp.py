"""Imports aiohttp without the system's certificates: it would read them twice, for TLS contexts that are never used.

That is a seventh of a command's time before its first request. Every connection has a context of its own
(`kuberuntime/client/http.py`); one without would trust no certificate, and so fail.
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
