"""Reads the write-ahead log of the store's file, to find how many changes it should contain.

SQLite reads the log up to the first frame whose checksum is wrong and ignores the rest. That is right for the frames of
an incomplete transaction, but a silent loss if a frame in the middle is damaged. So the frames that SQLite accepts are
compared with those that were written: frames of the log's generation (its salts) that end a transaction.

Format: https://sqlite.org/fileformat2.html#walformat
"""

import struct
from pathlib import Path
from typing import Final

HEADER: Final = struct.Struct(">8I")
FRAME: Final = struct.Struct(">6I")
MAGIC: Final = 0x377F0682
"""The last bit is the byte order of the checksums."""

ACCEPTED_AT: Final = 16
"""Offset of the last accepted frame's number in the index of the log (`-shm`), in the byte order of this machine."""


def last_commit(path: Path) -> int | None:
    """Return the number of the last frame that ends a transaction, 0 if none does; None if the header is damaged."""
    with path.open("rb") as file:
        head = file.read(HEADER.size)
        if len(head) < HEADER.size or not any(head):  # cut off before anything was committed
            return 0
        magic, _, page, _, first_salt, second_salt, *sums = HEADER.unpack(head)
        if magic & ~1 != MAGIC or _checksum(head[:24], big=bool(magic & 1)) != tuple(sums):
            return None
        complete = (path.stat().st_size - HEADER.size) // (FRAME.size + page)
        found = 0
        for number in range(1, complete + 1):
            _, pages, first, second, _, _ = FRAME.unpack(file.read(FRAME.size))
            if pages and (first == first_salt or second == second_salt):  # one of them may be damaged
                found = number
            file.seek(page, 1)
        return found


def accepted(index: Path) -> int:
    """Return the number of the last frame that SQLite accepted, from the index that it made."""
    with index.open("rb") as file:
        file.seek(ACCEPTED_AT)
        return int(struct.unpack("=I", file.read(4))[0])


def _checksum(data: bytes, *, big: bool) -> tuple[int, int]:
    """Return SQLite's checksum of an even number of 32-bit words."""
    first = second = 0
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
