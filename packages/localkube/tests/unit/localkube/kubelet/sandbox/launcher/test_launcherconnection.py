"""Tests the connection between the two processes, whose frames can contain file descriptors."""

import os
import resource
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.kubelet.sandbox.launcher.launcherconnection import (
    LONGEST,
    ConnectionClosedError,
    Decoder,
    LauncherConnection,
    encode,
    require_all,
)

MESSAGES = st.lists(st.dictionaries(st.text(max_size=8), st.integers() | st.text() | st.none(), max_size=4), max_size=5)


@pytest.fixture
def ends() -> Iterator[tuple[LauncherConnection, LauncherConnection]]:
    one, other = (LauncherConnection(sock) for sock in socket.socketpair())
    yield one, other
    one.close()
    other.close()


@settings(max_examples=30)
@given(MESSAGES, st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_messages_do_not_depend_on_chunk_boundaries(messages: list[dict[str, object]], cuts: list[int]) -> None:
    data = b"".join(encode(message) for message in messages)
    decoder, decoded, cut = Decoder(), [], 0
    while data:
        size = cuts[cut % len(cuts)]
        decoded += decoder.feed(data[:size])
        data, cut = data[size:], cut + 1
    assert decoded == messages


def test_oversized_frame_is_rejected() -> None:
    with pytest.raises(ValueError, match="exceeds the limit of"):
        Decoder().feed((LONGEST + 1).to_bytes(4, "big"))
    with pytest.raises(ValueError, match="exceeds the limit of"):
        encode({"text": "x" * LONGEST})


def test_descriptors_arrive_with_their_message(ends: tuple[LauncherConnection, LauncherConnection]) -> None:
    one, other = ends
    reading, writing = os.pipe()
    one.send({"n": 1})
    one.send({"n": 2}, (reading, writing))
    one.send({"n": 3})
    received = other.receive()
    while len(received) < 3:
        received += other.receive()
    assert [(item.message, len(item.fds)) for item in received] == [({"n": 1}, 0), ({"n": 2}, 2), ({"n": 3}, 0)]
    os.write(received[1].fds[1], b"through")
    assert os.read(reading, 10) == b"through"
    assert not any(os.get_inheritable(fd) for fd in received[1].fds)
    for fd in (reading, writing, *received[1].fds):
        os.close(fd)


def test_closed_connection_is_detected(ends: tuple[LauncherConnection, LauncherConnection]) -> None:
    one, other = ends
    one.close()
    with pytest.raises(ConnectionClosedError):
        other.receive()
    with pytest.raises(ConnectionClosedError):
        other.send({})


def test_unclaimed_descriptors_are_closed() -> None:
    one, other = (LauncherConnection(sock) for sock in socket.socketpair())
    reading, writing = os.pipe()
    frame = encode({"n": 1}, 1)
    socket.send_fds(one.sock, [frame[:3]], [writing])
    os.close(writing)
    assert other.receive() == []
    other.close()
    one.close()
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_missing_descriptors_are_reported_and_later_ones_arrive(
    ends: tuple[LauncherConnection, LauncherConnection],
) -> None:
    one, other = ends
    reading, writing = os.pipe()
    one.send({"n": 1}, (reading, writing))
    one.send({"n": 2}, (reading,))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (writing + 1, hard))
    try:
        received = other.receive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    while len(received) < 2:
        received += other.receive()
    assert [(item.message, len(item.fds), item.has_lost_descriptors) for item in received] == [
        ({"n": 1}, 0, True),
        ({"n": 2}, 1, False),
    ]
    with pytest.raises(OSError, match="too many open files"):
        require_all(received[0])
    for fd in (reading, writing, *received[1].fds):
        os.close(fd)
