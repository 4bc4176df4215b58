"""aiohttp is imported without its own certificates. Contexts that are created later use the system certificates."""

import subprocess
import sys

import pytest

LOADED = """
import ssl
from kuberuntime import lightaiohttp
original = ssl.SSLContext.set_default_verify_paths
lightaiohttp.load()
from aiohttp import connector
print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"], connector._SSL_CONTEXT_VERIFIED.verify_mode.name)
print(ssl.SSLContext.set_default_verify_paths is original, "set_default_verify_paths" in vars(ssl.SSLContext))
"""


@pytest.mark.slow
def test_unused_context_reads_no_certificates() -> None:
    result = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["0 CERT_REQUIRED", "True False"]
