"""Header blocks: names and values, compressed by one zlib stream per direction for the whole connection.

A block that is skipped would leave the next one unreadable, so every block is read, also those of refused streams.
"""

import struct
import zlib
from collections.abc import Mapping
from typing import Final


class ProtocolError(Exception):
    """The peer violated the protocol or exceeded a limit; the connection has to be closed."""


# The dictionary of section 2.6.10.1 of the specification: words after their lengths, then further text.
WORDS: Final = (
    "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset", "accept-encoding",
    "accept-language", "accept-ranges", "age", "allow", "authorization", "cache-control", "connection", "content-base",
    "content-encoding", "content-language", "content-length", "content-location", "content-md5", "content-range",
    "content-type", "date", "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since",
    "if-none-match", "if-range", "if-unmodified-since", "last-modified", "location", "max-forwards", "pragma",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "retry-after", "server", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning", "www-authenticate", "method", "get",
    "status", "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin",
)  # fmt: skip

TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)

DICTIONARY: Final = b"".join(struct.pack(">I", len(word)) + word.encode() for word in WORDS) + TAIL.encode()


BLOCK_LIMIT: Final = 65536
"""Most bytes of a decompressed block. Those of kubectl have a hundred."""

LENGTH: Final = struct.Struct(">I")

Headers = Mapping[str, str]
"""Several values of one name are joined by NUL, as on the wire."""


class HeaderWriter:
    """Compresses the blocks of one direction."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zdict=DICTIONARY)

    def write(self, headers: Headers) -> bytes:
        """Return the compressed block."""
        return self._zlib.compress(build(headers)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """Decompresses and parses the blocks of one direction."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> Headers:
        """Return the headers of a compressed block."""
        try:
            plain = self._zlib.decompress(block, BLOCK_LIMIT)
        except zlib.error as error:
            raise ProtocolError(f"a header block cannot be decompressed: {error}") from error
        if self._zlib.unconsumed_tail:
            raise ProtocolError(f"a header block is longer than {BLOCK_LIMIT} bytes")
        return parse(plain)


def build(headers: Headers) -> bytes:
    r"""Build a plain block.

    >>> build({"port": "80"})
    b'\x00\x00\x00\x01\x00\x00\x00\x04port\x00\x00\x00\x0280'
    """
    texts = (text.encode("latin-1") for pair in headers.items() for text in pair)
    return LENGTH.pack(len(headers)) + b"".join(LENGTH.pack(len(text)) + text for text in texts)


def parse(block: bytes) -> Headers:
    r"""Read a plain block.

    >>> parse(b'\x00\x00\x00\x01\x00\x00\x00\x04port\x00\x00\x00\x0280')
    {'port': '80'}
    """
    count, offset = _number(block, 0), LENGTH.size
    headers: dict[str, str] = {}
    for _ in range(count):
        name, offset = _text(block, offset)
        value, offset = _text(block, offset)
        if not name or name != name.lower() or name in headers:
            raise ProtocolError(f"a header block has the name {name!r}: names must be lower case, once each")
        headers[name] = value
    if offset != len(block):
        raise ProtocolError(f"a header block of {count} headers goes on after them")
    return headers


def _text(block: bytes, offset: int) -> tuple[str, int]:
    start = offset + LENGTH.size
    end = start + _number(block, offset)
    if end > len(block):
        raise ProtocolError("a header block ends within a header")
    return block[start:end].decode("latin-1"), end


def _number(block: bytes, offset: int) -> int:
    if offset + LENGTH.size > len(block):
        raise ProtocolError("a header block ends within a header")
    number: int = LENGTH.unpack_from(block, offset)[0]
    return number
