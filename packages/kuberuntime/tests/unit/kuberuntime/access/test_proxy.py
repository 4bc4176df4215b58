"""Tests that the proxy is selected as in Go programs."""

import pytest

from kuberuntime.access import urls
from kuberuntime.errors import ConfigError

PROXY = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "plain:3128"}


@pytest.mark.parametrize(
    ("server", "no_proxy", "chosen"),
    [
        ("https://api.example:6443", "", "http://proxy:3128"),
        ("http://api.example", "", "http://plain:3128"),
        ("https://localhost:6443", "", ""),
        ("https://127.0.0.5:6443", "", ""),
        ("https://[::1]:6443", "", ""),
        ("https://api.example:6443", "other, .example", ""),
        ("https://api.example:6443", "*.example", ""),
        ("https://api.example:6443", "API.example", ""),
        ("https://api.example:6443", "*", ""),
        ("https://api.example:6443", "example", ""),
        ("https://example:6443", ".example", "http://proxy:3128"),
        ("https://example:6443", "*.example", "http://proxy:3128"),
        ("https://api.example:6443", ".", "http://proxy:3128"),
        ("https://api.example.:6443", ".", ""),
        ("https://api.example:6443", "api.example:6443", ""),
        ("https://api.example:6443", "api.example:443", "http://proxy:3128"),
        ("https://api.example", "api.example:443", ""),
        ("https://api.example:6443", ".example:6443", ""),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", ""),
        ("https://10.1.2.3:6443", "10.1.2.3:443", "http://proxy:3128"),
        ("https://10.1.2.3:6443", "2.3", "http://proxy:3128"),
        ("https://[fd00::1]:6443", "fd00::1", ""),
        ("https://[fd00::1]:6443", "[fd00::1]", ""),
        ("https://[fd00::1]:6443", "[fd00:0::1]:6443", ""),
        ("https://[fd00::1]:6443", "[fd00::1]:443", "http://proxy:3128"),
        ("https://[fd00::1]:6443", "fd00::/16", ""),
        ("https://api.example:6443", ":6443", "http://proxy:3128"),
        ("https://api.example:6443", "api.example/8", "http://proxy:3128"),
        ("https://api.example:6443", "pi.example", "http://proxy:3128"),
        ("https://10.1.2.3:6443", "10.0.0.0/8", ""),
        ("https://11.1.2.3:6443", "10.0.0.0/8,example", "http://proxy:3128"),
    ],
)
def test_proxy_comes_from_the_environment_unless_excluded(server: str, no_proxy: str, chosen: str) -> None:
    assert urls.choose_proxy(server, "", PROXY | {"NO_PROXY": no_proxy}) == chosen


def test_proxy_of_the_kubeconfig_is_always_used() -> None:
    assert urls.choose_proxy("https://127.0.0.1:6443", "http://mine:1", PROXY) == "http://mine:1"


def test_no_proxy_is_used_by_default() -> None:
    assert urls.choose_proxy("https://api.example:6443", "", {}) == ""


def test_socks_proxy_is_rejected() -> None:
    with pytest.raises(ConfigError, match="must be a http:// or https:// URL"):
        urls.choose_proxy("https://api.example:6443", "socks5://proxy:1080", {})


@pytest.mark.parametrize(
    "url", ["socks5://me:s3cret@proxy:1080", "http://me:s3cret@[::1", "me:s3cret@proxy:1", "http://:x"]
)
def test_unusable_proxy_is_reported_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"proxy of https://api\.example:6443: Invalid value: ") as caught:
        urls.choose_proxy("https://api.example:6443", url, {})
    assert "s3cret" not in str(caught.value)
