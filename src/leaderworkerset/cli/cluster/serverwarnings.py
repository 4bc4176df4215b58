"""Warnings that an API server sends with its answers (RFC 7234, code 299), printed once each."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec

from kuberuntime.client.transport import Request, Response, StreamResponse, Transport

WARNING: Final = re.compile(r'299 \S+ ("(?:[^"\\]|\\.)*")')


class WarningTransport:
    """A transport that reports the warnings of answers."""

    def __init__(self, inner: Transport, say: Callable[[str], None]) -> None:
        self._inner = inner
        self._say = say
        self._said: set[str] = set()

    async def request(self, request: Request) -> Response:
        """Send one request, report the server's warnings, and return its answer."""
        response = await self._inner.request(request)
        for text in warnings(response.headers):
            if text not in self._said:
                self._said.add(text)
                self._say(f"Warning: {text}")
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send one request and yield its answer as a stream."""
        return self._inner.stream(request)

    async def close(self) -> None:
        """Release connections."""
        await self._inner.close()


def warnings(headers: Mapping[str, str]) -> Iterator[str]:
    r"""Yield the texts of the warnings in headers.

    >>> list(warnings({"warning": '299 - "unknown field \\"a\\"", 299 - "deprecated"'}))
    ['unknown field "a"', 'deprecated']
    """
    for quoted in WARNING.findall(headers.get("warning", "")):
        try:
            yield msgspec.json.decode(quoted, type=str)
        except msgspec.DecodeError:  # an escape that JSON does not have
            yield quoted[1:-1]
