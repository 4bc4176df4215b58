"""Tests that the guard accepts only requests that contain the token and are sent to this machine."""

import pytest

from localkube.apiserver.frontend.authentication import Authenticator

GUARD = Authenticator(port=8443, token="secret")
GOOD = {"host": "127.0.0.1:8443", "authorization": "Bearer secret"}


@pytest.mark.parametrize("host", ["127.0.0.1:8443", "localhost:8443", "LOCALHOST:8443", "[::1]:8443"])
def test_request_with_the_token_for_this_machine_is_accepted(host: str) -> None:
    assert GUARD.check(GOOD | {"host": host}) is None


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "Basic secret"}, 401),
        ({"authorization": "secret"}, 401),
        ({"authorization": "Bearer s\u00e9cret"}, 401),
        ({"authorization": "Bearer \udcff"}, 401),
        ({"host": "attacker.example:8443"}, 403),
        ({"host": "127.0.0.1:80"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"host": "127.0.0.1.attacker.example:8443"}, 403),
        ({"host": ""}, 403),
        ({"origin": "https://attacker.example"}, 403),
        ({"origin": "http://127.0.0.1:8443"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
    ids=str,
)
def test_other_requests_are_refused(headers: dict[str, str], code: int) -> None:
    refused = GUARD.check(GOOD | headers)
    assert refused is not None
    assert refused.code == code


def test_browser_navigation_still_needs_the_token() -> None:
    refused = GUARD.check({"host": "127.0.0.1:8443", "sec-fetch-site": "none"})
    assert refused is not None
    assert refused.code == 401
