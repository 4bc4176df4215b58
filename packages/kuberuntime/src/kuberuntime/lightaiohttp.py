"""Imports aiohttp without its default TLS contexts, which would load the system CAs twice.

Loading the CAs takes a seventh of a command's time before its first request. Every connection has its own context
(`kuberuntime/client/http.py`). A connection without a context would not trust any certificate, and would fail.
"""

import ssl
import sys


def load() -> None:
    """Import aiohttp with default contexts that trust no certificate. Later contexts are not affected."""
    if "aiohttp" in sys.modules:
        return
    ssl.SSLContext.set_default_verify_paths = _read_nothing  # type: ignore[method-assign,assignment]
    try:
        import aiohttp  # noqa: F401 - only loaded
    finally:
        del ssl.SSLContext.set_default_verify_paths  # restores the method of the base class


def _read_nothing(_: ssl.SSLContext) -> None:
    """Replace the method that loads the system CAs."""
