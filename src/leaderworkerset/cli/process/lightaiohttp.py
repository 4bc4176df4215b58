"""aiohttp without the system's certificates: it would read them twice when it is imported, for contexts nothing here uses.

That is a seventh of the time that a command needs until it asks the API server. Every connection brings a context of its
own (`kuberuntime/client/http.py`); one that did not would trust nobody, and so fail.
"""

import ssl
import sys


def load() -> None:
    """Import aiohttp so that its own contexts trust nobody; contexts made afterwards are as ever."""
    if "aiohttp" in sys.modules:
        return
    ssl.SSLContext.set_default_verify_paths = _read_nothing  # type: ignore[method-assign,assignment]
    try:
        import aiohttp  # noqa: F401 - only loaded
    finally:
        del ssl.SSLContext.set_default_verify_paths  # that of the class below it is found again


def _read_nothing(_: ssl.SSLContext) -> None:
    """Stand in for what reads the system's certificates."""
