"""Tests the request and the output of commands in a rank, and connections that close early."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from testkit.virtualtime import run
from tests.explanations.builders import placed

from kuberuntime.client import channels
from kuberuntime.errors import ConnectionFailedError
from lwsctl.client.inspection import CommandResult, execute

Pieces = Sequence[tuple[int, bytes]]


class Streams:
    """The streams of a command that prints these chunks."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = list(pieces)
        self.sent: list[tuple[int, bytes]] = []

    async def send(self, channel: int, data: bytes) -> None:
        self.sent.append((channel, data))

    async def close_stream(self, channel: int) -> None:
        self.sent.append((channels.CLOSE, bytes([channel])))

    async def receive(self) -> tuple[int, bytes] | None:
        return self.pieces.pop(0) if self.pieces else None


def executed(pieces: Pieces, stdin: bytes = b"") -> tuple[CommandResult, Streams, dict[str, Any]]:
    """Run a command whose streams contain these chunks."""
    asked: dict[str, Any] = {}
    streams = Streams(pieces)

    @asynccontextmanager
    async def opened(path: str, query: Sequence[tuple[str, str]], protocol: str) -> AsyncIterator[Any]:
        asked.update(path=path, query=query, protocol=protocol)
        yield streams

    command = execute(opened, placed(), ["cat", "-n"], container=None, stdin=stdin)
    return run(command), streams, asked


def test_command_returns_its_code_and_output() -> None:
    failure = b'{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}'
    pieces = [
        (channels.STDOUT, b"o\xff"),
        (channels.STDERR, b"e"),
        (channels.STDOUT, b"ut"),
        (channels.STATUS, failure),
    ]
    result, streams, asked = executed(pieces, stdin=b"in")
    assert result == CommandResult(3, "o\ufffdut", "e")
    assert streams.sent == [(channels.STDIN, b"in"), (channels.CLOSE, bytes([channels.STDIN]))]
    assert asked["path"] == "/api/v1/namespaces/prod/pods/web-0/exec"
    assert [value for name, value in asked["query"] if name in {"container", "command", "stdin"}] == [
        "main",
        "true",
        "cat",
        "-n",
    ]


def test_command_without_an_exit_status_raises_an_error() -> None:
    with pytest.raises(ConnectionFailedError, match="web-0: the connection was closed before the command exited"):
        executed([(channels.STDOUT, b"half")])
