"""Tests that only the browser that opened the link receives responses. Each check is tested separately."""

import pytest
from msgspec.structs import replace

from lwsctl.dashboard.requestchecks import COOKIE, HEADERS, Rejection, RequestChecks, RequestHead, Secrets

HOST = "127.0.0.1:8001"


def gate(*, allows_actions: bool = False) -> RequestChecks:
    return RequestChecks(
        Secrets(path_prefix="p", link_token="once", session_token="cookie", action_token="act"),
        8001,
        allows_actions=allows_actions,
    )


GOOD = RequestHead(method="GET", path="/p/", hosts=[HOST], sites=["same-origin"], cookies=[f"{COOKIE}=cookie"])
ACTION = replace(GOOD, method="POST", path="/p/act", origins=[f"http://{HOST}"], action_tokens=["act"])


@pytest.mark.parametrize("host", [HOST, "localhost:8001"])
@pytest.mark.parametrize("sites", [[], ["same-origin"], ["none"]])
def test_browser_with_the_cookie_is_admitted(host: str, sites: list[str]) -> None:
    assert gate().rejection(replace(GOOD, hosts=[host], sites=sites)) is None


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example:8001"],
        ["127.0.0.1"],
        ["127.0.0.1:8002"],
        ["127.0.0.1:8001.evil.example"],
        ["localhost.evil.example:8001"],
        ["[::1]:8001"],
        [HOST, "evil.example"],
        [HOST, HOST],
    ],
)
def test_foreign_host_name_is_rejected(hosts: list[str]) -> None:
    """With DNS rebinding, a page of evil.example requests its own host name, which now resolves to 127.0.0.1."""
    assert gate().rejection(replace(GOOD, hosts=hosts)) is Rejection.HOST


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", f"https://{HOST}", "http://127.0.0.1:9999"])
def test_foreign_origin_is_rejected_with_a_valid_cookie(origin: str) -> None:
    assert gate(allows_actions=True).rejection(replace(ACTION, origins=[origin])) is Rejection.ORIGIN


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "x"])
def test_page_of_a_different_local_port_is_rejected(site: str) -> None:
    assert gate().rejection(replace(GOOD, sites=[site])) is Rejection.ORIGIN


@pytest.mark.parametrize(
    "cookies",
    [
        [],
        [f"{COOKIE}="],
        [f"{COOKIE}=cookies"],
        ["cookie"],
        [f"x{COOKIE}=cookie"],
        [f"{COOKIE}=\udcff"],
        [f"{COOKIE}=cookie; {COOKIE}=other"],
        [f"{COOKIE}=cookie", f"{COOKIE}=cookie"],
    ],
)
def test_request_without_the_cookie_is_rejected(cookies: list[str]) -> None:
    assert gate().rejection(replace(GOOD, cookies=cookies)) is Rejection.NO_SESSION


def test_link_opens_once() -> None:
    secrets = gate().secrets
    assert not secrets.redeem("")
    assert not secrets.redeem("onc")
    assert secrets.redeem("once")
    assert not secrets.redeem("once")


def test_link_needs_no_cookie_and_the_correct_host() -> None:
    link = RequestHead(method="GET", path="/p/open", hosts=[HOST], sites=["cross-site"])
    assert gate().rejection(link) is None
    assert gate().rejection(replace(link, hosts=["evil.example:8001"])) is Rejection.HOST
    assert gate().rejection(replace(link, method="HEAD")) is Rejection.METHOD


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "get"])
def test_other_methods_are_rejected(method: str) -> None:
    assert gate().rejection(replace(GOOD, method=method)) is Rejection.METHOD


def test_long_addresses_are_rejected() -> None:
    assert gate().rejection(replace(GOOD, path="/p/" + "x" * 5000)) is Rejection.ADDRESS


def test_actions_are_rejected_unless_enabled() -> None:
    assert gate().rejection(ACTION) is Rejection.READ_ONLY
    assert gate(allows_actions=True).rejection(ACTION) is None


@pytest.mark.parametrize(
    "forged", [replace(ACTION, action_tokens=[]), replace(ACTION, action_tokens=["x"]), replace(ACTION, origins=[])]
)
def test_actions_require_the_page_token_and_an_origin(forged: RequestHead) -> None:
    assert gate(allows_actions=True).rejection(forged) is Rejection.FORGED


def test_content_policy_forbids_inline_code_and_other_hosts() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
