"""Frames: against bytes that another implementation wrote, whole and in pieces."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.apiserver.front.spdy.codec import CONTROL_LIMIT, DATA_LIMIT, FrameReader, FrameWriter
from localkube.apiserver.front.spdy.frames import (
    Data,
    Frame,
    GoAway,
    MoreHeaders,
    Ping,
    RstStream,
    SynReply,
    SynStream,
)
from localkube.apiserver.front.spdy.headers import ProtocolError

RECORDED = """
800300010000003e0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e01c60616061c0c0c0c0590489
c64c50f2663400000000ffff
0000000101000000
800300010000001a00000003000000000000826a26ac0ad57850499508000000ffff
000000030000000568656c6c6f
800300020000000e000000036260606000000000ffff
800300080100001400000003024983302857311b321801000000ffff
800300060000000400000001
80030003000000080000000300000005
800300040000000c000000010100000700010000
800300090000000800000003000003e8
80030007000000080000000300000000
"""
"""One frame after the other as the client library of kubectl (moby/spdystream 0.5.1) writes them."""

MEANT: tuple[Frame, ...] = (
    SynStream(1, {"streamtype": "error", "port": "8080", "requestid": "0"}),
    Data(1, b"", fin=True),
    SynStream(3, {"streamtype": "data", "port": "8080", "requestid": "0"}),
    Data(3, b"hello"),
    SynReply(3),
    MoreHeaders(3, {"a": "1\0002"}, fin=True),
    Ping(1),
    RstStream(3, 5),
    GoAway(3, 0),
)

STREAMS = st.integers(1, 2**31 - 1)
WORDS = st.integers(0, 2**32 - 1)
HEADERS = st.dictionaries(st.sampled_from(["port", "streamtype", "requestid"]), st.text("abc0123456789"))
FRAMES: st.SearchStrategy[Any] = st.one_of(
    st.builds(SynStream, STREAMS, HEADERS, st.booleans(), st.booleans()),
    st.builds(SynReply, STREAMS, HEADERS, st.booleans()),
    st.builds(MoreHeaders, STREAMS, HEADERS, st.booleans()),
    st.builds(RstStream, STREAMS, WORDS),
    st.builds(Ping, WORDS),
    st.builds(GoAway, st.integers(0, 2**31 - 1), WORDS),
    st.builds(Data, STREAMS, st.binary(), st.booleans()),
)


def test_the_frames_of_kubectl_are_understood() -> None:
    assert FrameReader().feed(bytes.fromhex(RECORDED)) == list(MEANT)


@settings(max_examples=30, deadline=None)
@given(st.lists(FRAMES), st.data())
def test_frames_are_the_same_wherever_their_bytes_are_split(frames: list[Frame], data: st.DataObject) -> None:
    writer, reader = FrameWriter(), FrameReader()
    line = b"".join(map(writer.write, frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(line)))))
    pieces = [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == frames


@settings(deadline=None)
@given(st.lists(st.binary()))
def test_any_bytes_are_frames_or_a_fault_of_the_peer(pieces: list[bytes]) -> None:
    reader = FrameReader()
    with suppress(ProtocolError):
        for piece in pieces:
            reader.feed(piece)


def test_frames_of_types_that_nobody_knows_are_skipped() -> None:
    assert FrameReader().feed(bytes.fromhex("8003000a00000003616263" + "80030006 00000004 00000009")) == [Ping(9)]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("80020006 00000004 00000001", "a frame is of SPDY/2: SPDY/3 is spoken here"),
        ("80030006 00000005 0000000100", "a control frame has 5 bytes where 4 are due"),
        ("80030006 00000000", "a control frame has 0 bytes where 4 are due"),
        ("80030001 00000004 00000001", "a control frame has 4 bytes where 10 are due"),
        ("80030002 00000000", "a control frame has 0 bytes where 4 are due"),
        ("80030003 00000008 00000000 00000005", "stream 0"),
        ("00000000 00000000", "stream 0"),
        ("80030001 00ffffff", f"a control frame has 16777215 bytes: at most {CONTROL_LIMIT} are taken"),
        ("00000001 00ffffff", f"a data frame has 16777215 bytes: at most {DATA_LIMIT} are taken"),
    ],
)
def test_a_frame_that_is_wrong_is_told(line: str, text: str) -> None:
    reader = FrameReader()
    with pytest.raises(ProtocolError, match=text):
        reader.feed(bytes.fromhex(line))
