"""The tables of the store's file, and the checksums of their rows.

SQLite detects malformed pages, but not flipped bits in stored values: the checksum of a row covers all its columns.
"""

from typing import Final, TypeAlias
from zlib import crc32

FORMAT: Final = 2
"""The layout of the tables, in `PRAGMA user_version`. Format 1 had no checksums and did not return free pages."""

UNCHECKED: Final = 1
"""The format without checksums, which is upgraded at the start."""

OBJECTS: Final = """
CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
"""
SCHEMA: Final = f"""{OBJECTS}
CREATE TABLE history (
  revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  type TEXT NOT NULL, previous INTEGER NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
"""
SCHEMA_1: Final = f"""{OBJECTS}
CREATE TABLE history (
  revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  type TEXT NOT NULL, previous INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
HistoryRow: TypeAlias = tuple[int, str, str, str, str, int, bytes]
"""A row of the history without its checksum."""

COUNTERS: Final = ("revision", "compacted")


def row_checksum(row: HistoryRow) -> int:
    """Return the checksum of a row of the history; `TypeError` where its value is not of bytes."""
    *head, value = row
    return crc32(value, crc32("\0".join(map(str, head)).encode()))


def counter_checksum(name: str, value: int) -> int:
    """Return the checksum of a counter.

    >>> counter_checksum("revision", 1) == counter_checksum("revision", 2)
    False
    """
    return crc32(f"{name}\0{value}".encode())
