"""Tests that each warning from an API server is printed once."""

import asyncio

import pytest
from testkit.transports import RequestTransport

from kuberuntime.client.transport import Request, Response
from lwsctl.cli.cluster.target import WarningTransport, warnings_of


class Answers(RequestTransport):
    """A transport whose responses all have the same headers."""

    def __init__(self, **headers: str) -> None:
        self._headers = headers

    async def request(self, request: Request) -> Response:
        return Response(200, self._headers, b"{}")


def test_repeated_warning_is_printed_once() -> None:
    said: list[str] = []
    transport = WarningTransport(Answers(warning='299 - "a is deprecated", 299 - "b is not known"'), said.append)
    for _ in range(2):
        assert asyncio.run(transport.request(Request("GET", "/"))).status == 200
    assert said == ["Warning: a is deprecated", "Warning: b is not known"]


def test_response_without_warnings_prints_nothing() -> None:
    said: list[str] = []
    asyncio.run(WarningTransport(Answers(), said.append).request(Request("GET", "/")))
    assert said == []


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ('299 - "a, 299 - \\"b\\""', ['a, 299 - "b"']),
        ('299 apiserver "a" "Sun, 22 Nov 2026 11:00:00 GMT"', ["a"]),
        ('299 - "\\q"', ["\\q"]),
        ("199 - other", []),
    ],
)
def test_warning_headers_are_parsed(header: str, texts: list[str]) -> None:
    assert list(warnings_of({"warning": header})) == texts
