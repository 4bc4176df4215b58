"""The tables of the store's file, and the checksums of their rows.

SQLite detects malformed pages, but not flipped bits in stored values: the checksum of a row covers all its columns.
"""

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

FORMAT: Final = 2
"""The layout of the tables, in `PRAGMA user_version`."""

STATEMENTS: Final = (
    """CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID""",
    """CREATE TABLE history (
  revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  type TEXT NOT NULL, previous INTEGER NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL
)""",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID",
)
COUNTERS: Final = ("revision", "compacted")

FITTING: Final = (
    "SELECT (SELECT count(*) FROM objects LEFT JOIN history USING (revision, resource, namespace, name)"
    " WHERE value IS NULL OR type = 'DELETED') + (SELECT count(*) FROM history WHERE type != 'DELETED'"
    " AND revision NOT IN (SELECT previous FROM history) AND revision NOT IN (SELECT revision FROM objects))"
)
"""Counts the objects that are not in the history, and those of the history that are missing; 0 in a whole file."""


def row_checksum(row: Sequence[Any]) -> int:
    """Return the checksum of a row of the history; its last column is the value, in bytes."""
    *head, value = row
    return crc32(value, crc32("\0".join(map(str, head)).encode()))


def counter_checksum(name: str, value: int) -> int:
    """Return the checksum of a counter.

    >>> counter_checksum("revision", 1) == counter_checksum("revision", 2)
    False
    """
    return crc32(f"{name}\0{value}".encode())
