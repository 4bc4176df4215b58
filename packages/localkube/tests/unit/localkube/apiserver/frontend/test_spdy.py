"""Tests SPDY header blocks, the connection state, and frames, which are compared with recorded bytes."""

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.localkube.apiserver.frontend.spdyframes import data_frame, ping, rst_stream, syn_reply, syn_stream

from localkube.apiserver.frontend.spdy import (
    DICTIONARY,
    LONGEST,
    STREAM_LIMIT,
    Connection,
    Frame,
    FrameReader,
    FrameWriter,
    ProtocolError,
    Status,
    build_headers,
    parse_headers,
)

BLOCKS = st.dictionaries(
    st.text("abcdefghijklmnopqrstuvwxyz-:0123456789", min_size=1), st.text(st.characters(max_codepoint=255))
)


def test_dictionary_equals_the_specification() -> None:
    """Each SPDY/3 compressor writes this checksum to its first block."""
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@settings(max_examples=30, deadline=None)
@given(st.lists(BLOCKS))
@pytest.mark.slow
def test_header_blocks_survive_a_round_trip(blocks: list[dict[str, str]]) -> None:
    writer, reader = FrameWriter(), FrameReader()
    line = b"".join(writer.write(syn_stream(1, block)) for block in blocks)
    assert [frame.headers for frame in reader.feed(line)] == blocks


@settings(deadline=None)
@given(st.binary())
def test_random_header_block_is_parsed_or_rejected(block: bytes) -> None:
    try:
        headers = parse_headers(block)
    except ProtocolError:
        return
    assert build_headers(headers) == block


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (b"\0\0\0\1", "a header block is incomplete"),
        (b"\0\0\0\1\0\0\0\1a\0\0\0\2b", "a header block is incomplete"),
        (b"\0\0\0\1\xff\xff\xff\xffa\0\0\0\1b", "a header block is incomplete"),
        (b"\xff\xff\xff\xff\0\0\0\1a\0\0\0\1b", "a header block is incomplete"),
        (b"\0\0\0\0more", "a header block contains data after its 0 headers"),
        (b"\0\0\0\1\0\0\0\1A\0\0\0\0", "header 'A' is duplicated or not lowercase"),
        (b"\0\0\0\2\0\0\0\1a\0\0\0\0\0\0\0\1a\0\0\0\0", "header 'a' is duplicated"),
        (b"\0\0\0\1\0\0\0\0\0\0\0\0", "header '' is duplicated"),
    ],
    ids=["no pair", "short value", "long name", "many", "longer", "upper case", "twice", "empty"],
)
def test_malformed_header_block_is_rejected(block: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        parse_headers(block)


def test_uncompressed_header_block_is_rejected() -> None:
    with pytest.raises(ProtocolError, match="cannot decompress"):
        FrameReader().feed(bytes.fromhex("80030002 00000008 00000001 00000000"))


def test_small_header_block_cannot_expand_into_a_large_one() -> None:
    line = FrameWriter().write(syn_stream(1, {"a": "b" * LONGEST["control"]}))
    assert len(line) < 1000
    with pytest.raises(ProtocolError, match=f"exceeds the limit of {LONGEST['control']} bytes"):
        FrameReader().feed(line)


def test_header_block_of_a_different_dictionary_is_rejected() -> None:
    compressor = zlib.compressobj(zdict=b"another")
    block = compressor.compress(struct.pack(">I", 0)) + compressor.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(ProtocolError, match="cannot decompress"):
        FrameReader().feed(struct.pack(">III", 0x80030002, 4 + len(block), 1) + block)


RECORDED = """
800300010000003e0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e01c60616061c0c0c0c0590489
c64c50f2663400000000ffff
0000000101000000
800300010000001a00000003000000000000826a26ac0ad57850499508000000ffff
000000030000000568656c6c6f
800300020000000e000000036260606000000000ffff
800300060000000400000001
80030003000000080000000300000005
800300040000000c000000010100000700010000
800300090000000800000003000003e8
80030007000000080000000300000000
"""
"""Frames that were recorded from the client library of kubectl (moby/spdystream 0.5.1)."""

MEANT = (
    syn_stream(1, {"streamtype": "error", "port": "8080", "requestid": "0"}),
    data_frame(1, b"", fin=True),
    syn_stream(3, {"streamtype": "data", "port": "8080", "requestid": "0"}),
    data_frame(3, b"hello"),
    syn_reply(3),
    ping(1),
    rst_stream(3, 5),
)

STREAMS = st.integers(1, 2**31 - 1)
WORDS = st.integers(0, 2**32 - 1)
HEADERS = st.dictionaries(st.sampled_from(["port", "streamtype", "requestid"]), st.text("abc0123456789"))
FRAMES = st.one_of(
    st.builds(syn_stream, STREAMS, HEADERS, fin=st.booleans()),
    st.builds(syn_reply, STREAMS, HEADERS, fin=st.booleans()),
    st.builds(rst_stream, STREAMS, WORDS),
    st.builds(ping, WORDS),
    st.builds(data_frame, STREAMS, st.binary(), fin=st.booleans()),
)


def test_recorded_frames_of_kubectl_are_decoded() -> None:
    assert FrameReader().feed(bytes.fromhex(RECORDED)) == list(MEANT)


@settings(max_examples=30, deadline=None)
@given(st.lists(FRAMES), st.data())
def test_frames_do_not_depend_on_chunk_boundaries(frames: list[Frame], data: st.DataObject) -> None:
    writer, reader = FrameWriter(), FrameReader()
    line = b"".join(map(writer.write, frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(line)))))
    pieces = [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == frames


@settings(deadline=None)
@given(st.lists(st.binary()))
def test_random_bytes_are_frames_or_a_protocol_error(pieces: list[bytes]) -> None:
    reader = FrameReader()
    with suppress(ProtocolError):
        for piece in pieces:
            reader.feed(piece)


def test_frames_of_unknown_types_are_skipped() -> None:
    assert FrameReader().feed(bytes.fromhex("8003000a00000003616263" + "80030006 00000004 00000009")) == [ping(9)]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("80020006 00000004 00000001", "SPDY/2 is not supported. Use SPDY/3"),
        ("80030008 00000004 00000001", "HEADERS frames are not supported. Use SYN_STREAM frames"),
        ("80030006 00000005 0000000100", "a control frame has 5 bytes, but 4 are expected"),
        ("80030006 00000000", "a control frame has 0 bytes, but 4 are expected"),
        ("80030001 00000004 00000001", "a control frame has 4 bytes, but 10 are expected"),
        ("80030002 00000000", "a control frame has 0 bytes, but 4 are expected"),
        ("80030003 00000008 00000000 00000005", "stream ID 0"),
        ("00000000 00000000", "stream ID 0"),
        ("80030001 00ffffff", f"a control frame with 16777215 bytes exceeds the limit of {LONGEST['control']} bytes"),
        ("00000001 00ffffff", f"a data frame with 16777215 bytes exceeds the limit of {LONGEST['data']} bytes"),
    ],
)
def test_malformed_frame_is_rejected(line: str, text: str) -> None:
    reader = FrameReader()
    with pytest.raises(ProtocolError, match=text):
        reader.feed(bytes.fromhex(line))


class Peer:
    """The client side of a connection."""

    def __init__(self, *frames: Frame) -> None:
        self.connection = Connection()
        self._writer = FrameWriter()
        self._reader = FrameReader()
        self.events = self.tell(*frames)

    def tell(self, *frames: Frame) -> list[Frame]:
        return self.connection.receive(b"".join(map(self._writer.write, frames)))

    def hear(self) -> list[Frame]:
        return self._reader.feed(self.connection.take_output())


def test_stream_is_opened_accepted_and_closed() -> None:
    peer = Peer(syn_stream(1, {"port": "80"}), data_frame(1, b"question"), data_frame(1, b"!", fin=True))
    assert peer.events == [
        syn_stream(1, {"port": "80"}),
        data_frame(1, b"question"),
        data_frame(1, b"!", fin=True),
    ]
    peer.connection.accept(1)
    peer.connection.send(1, b"answer")
    peer.connection.send(1, b"", fin=True)
    assert peer.hear() == [syn_reply(1), data_frame(1, b"answer"), data_frame(1, b"", fin=True)]
    assert peer.hear() == []


def test_client_may_send_after_the_server_has_finished() -> None:
    peer = Peer(syn_stream(1))
    peer.connection.send(1, b"", fin=True)
    assert peer.tell(data_frame(1, b"more"), data_frame(1, b"", fin=True)) == [
        data_frame(1, b"more"),
        data_frame(1, b"", fin=True),
    ]


def test_pings_of_the_client_are_answered() -> None:
    peer = Peer(ping(1), ping(2), ping(3))
    assert peer.hear() == [ping(1), ping(3)]


@pytest.mark.parametrize(
    "line",
    ["80030004 0000000c 00000001 01000007 00010000", "80030007 00000008 00000001 00000000"],
    ids=["settings", "goaway"],
)
def test_frames_without_effect_change_nothing(line: str) -> None:
    peer = Peer(syn_stream(1))
    assert peer.connection.receive(bytes.fromhex(line)) == []
    assert peer.events == [syn_stream(1, {})]
    peer.connection.send(1, b"as before")
    assert peer.hear() == [data_frame(1, b"as before")]


def test_stream_may_be_opened_with_its_last_frame() -> None:
    peer = Peer(syn_stream(1, fin=True))
    assert peer.events == [syn_stream(1, fin=True)]
    peer.connection.send(1, b"", fin=True)
    peer.connection.reset(1, Status.CANCEL)
    assert peer.hear() == [data_frame(1, b"", fin=True)]


def test_nothing_is_sent_on_a_stream_reset_by_the_client() -> None:
    peer = Peer(syn_stream(1), rst_stream(1, Status.CANCEL), rst_stream(1, Status.CANCEL))
    assert peer.events == [syn_stream(1, {}), rst_stream(1)]
    peer.connection.accept(1)
    peer.connection.send(1, b"lost")
    peer.connection.send(1, b"", fin=True)
    peer.connection.reset(1, Status.CANCEL)
    assert peer.hear() == []


def test_data_after_a_reset_by_the_server_is_ignored() -> None:
    peer = Peer(syn_stream(1))
    peer.connection.reset(1, Status.CANCEL)
    assert peer.tell(data_frame(1, b"too late"), data_frame(1, b"", fin=True)) == []
    assert peer.hear() == [rst_stream(1, Status.CANCEL)]


def test_data_after_the_end_resets_the_stream() -> None:
    peer = Peer(syn_stream(1, fin=True), data_frame(1, b"more"))
    assert peer.events[1:] == [rst_stream(1, Status.STREAM_ALREADY_CLOSED)]
    assert peer.hear() == [rst_stream(1, Status.STREAM_ALREADY_CLOSED)]


def test_data_of_an_unopened_stream_is_rejected() -> None:
    peer = Peer(data_frame(7, b"?"))
    assert (peer.events, peer.hear()) == ([], [rst_stream(7, Status.INVALID_STREAM)])


@pytest.mark.parametrize("second", [2, 3, 1])
def test_stream_ids_must_be_odd_and_increase(second: int) -> None:
    with pytest.raises(
        ProtocolError, match=f"stream {second} was opened after stream 3. Stream IDs must be odd and increasing"
    ):
        Peer(syn_stream(3), syn_stream(second))


def test_streams_beyond_the_limit_are_rejected_until_others_end() -> None:
    peer = Peer(*(syn_stream(2 * index + 1) for index in range(STREAM_LIMIT + 1)))
    assert len(peer.events) == STREAM_LIMIT
    assert peer.hear() == [rst_stream(2 * STREAM_LIMIT + 1, Status.REFUSED_STREAM)]
    after = 2 * STREAM_LIMIT + 3
    assert peer.tell(rst_stream(1, Status.CANCEL), syn_stream(after)) == [rst_stream(1), syn_stream(after, {})]
