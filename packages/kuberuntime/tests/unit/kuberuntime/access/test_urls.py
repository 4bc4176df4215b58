"""Tests that the error for an invalid URL contains its kubeconfig entry, but never a password."""

import pytest

from kuberuntime.access import urls
from kuberuntime.errors import ConfigError


@pytest.mark.parametrize("url", ["https://api:6443", "http://127.0.0.1", "https://[::1]:6443/path", "HTTPS://api"])
def test_server_urls_are_accepted(url: str) -> None:
    assert urls.check_server(url, "server").hostname


@pytest.mark.parametrize(
    "url",
    [
        "", "api:6443", "ftp://api", "https://", "https://[::1", "https://api:x", "https://api:99999", "https://api:0",
        "https://a b", "https://api\n", "https://\x1b[2J", "https://bücher", "https://api?a=b", "https://api#a",
    ],
)  # fmt: skip
def test_invalid_server_urls_are_rejected_in_one_line(url: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^server: Invalid value: .*: must be a URL such as https://host:6443$"
    ) as caught:
        urls.check_server(url, "server")
    assert str(caught.value).isprintable()


def test_password_in_a_server_url_is_rejected_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="the URL must not contain a user and password") as caught:
        urls.check_server("https://me:s3cret@api:6443", "server")
    assert "s3cret" not in str(caught.value)
    assert "https://xxxxx@api:6443" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://me:s3cret@p:1", "me:s3cret@p:1", "http://me:s3cr@et@p", "socks5://s3cret@[::1"]
)
def test_user_and_password_in_urls_are_redacted(url: str) -> None:
    assert "s3cr" not in urls.redact(url)
    assert "et@" not in urls.redact(url)
