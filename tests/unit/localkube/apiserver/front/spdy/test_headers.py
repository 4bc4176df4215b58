"""Header blocks, plain and compressed."""

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.apiserver.front.spdy.headers import (
    BLOCK_LIMIT,
    DICTIONARY,
    HeaderReader,
    HeaderWriter,
    ProtocolError,
    build,
    parse,
)

BLOCKS = st.dictionaries(
    st.text("abcdefghijklmnopqrstuvwxyz-:0123456789", min_size=1), st.text(st.characters(max_codepoint=255))
)


def test_the_dictionary_is_that_of_the_specification() -> None:
    """Every compressor of SPDY/3 writes this checksum into its first block."""
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@settings(max_examples=30, deadline=None)
@given(st.lists(BLOCKS))
def test_blocks_come_out_as_they_went_in(blocks: list[dict[str, str]]) -> None:
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.read(writer.write(block)) for block in blocks] == blocks


@settings(deadline=None)
@given(st.binary())
def test_any_other_block_is_refused_or_read(block: bytes) -> None:
    try:
        headers = parse(block)
    except ProtocolError:
        return
    assert build(headers) == block


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (b"\0\0\0\1", "ends within a header"),
        (b"\0\0\0\1\0\0\0\1a\0\0\0\2b", "ends within a header"),
        (b"\0\0\0\1\xff\xff\xff\xffa\0\0\0\1b", "ends within a header"),
        (b"\xff\xff\xff\xff\0\0\0\1a\0\0\0\1b", "ends within a header"),
        (b"\0\0\0\0more", "a header block of 0 headers goes on after them"),
        (b"\0\0\0\1\0\0\0\1A\0\0\0\0", "has the name 'A': names must be lower case, once each"),
        (b"\0\0\0\2\0\0\0\1a\0\0\0\0\0\0\0\1a\0\0\0\0", "has the name 'a'"),
        (b"\0\0\0\1\0\0\0\0\0\0\0\0", "has the name ''"),
    ],
    ids=["no pair", "short value", "long name", "many", "longer", "upper case", "twice", "empty"],
)
def test_a_block_that_is_wrong_is_told(block: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        parse(block)


def test_a_block_that_is_not_compressed_is_refused() -> None:
    with pytest.raises(ProtocolError, match="cannot be decompressed"):
        HeaderReader().read(b"\0\0\0\0")


def test_a_small_block_cannot_unfold_into_a_large_one() -> None:
    squeezed = HeaderWriter().write({"a": "b" * BLOCK_LIMIT})
    assert len(squeezed) < 1000
    with pytest.raises(ProtocolError, match=f"longer than {BLOCK_LIMIT} bytes"):
        HeaderReader().read(squeezed)


def test_another_dictionary_is_refused() -> None:
    compressor = zlib.compressobj(zdict=b"another")
    block = compressor.compress(struct.pack(">I", 0)) + compressor.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(ProtocolError, match="cannot be decompressed"):
        HeaderReader().read(block)
