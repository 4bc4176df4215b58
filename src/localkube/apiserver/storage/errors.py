"""The errors of the store's file, in words for the user of the cluster.

```
StoreError          the file cannot be used; the text names it and says what to do
└── DamagedError    it is damaged, or not ours; it was left as it is
```
"""

import sqlite3
from typing import Final

from localkube.errors import LocalkubeError

INTACT: Final = "what was stored before is intact"
ADVICE: Final = {
    sqlite3.SQLITE_FULL: f"free space on the disk; {INTACT}",
    sqlite3.SQLITE_IOERR: f"check the disk and its free space; {INTACT}",
    sqlite3.SQLITE_BUSY: "another program holds the file: close it",
    sqlite3.SQLITE_LOCKED: "another program holds the file: close it",
    sqlite3.SQLITE_READONLY: "make the file and its directory writable",
    sqlite3.SQLITE_CANTOPEN: "make sure that its directory exists and can be written to",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore a copy, or use another file",
    sqlite3.SQLITE_NOTADB: "this is not a file of the embedded cluster: use another, or restore a copy",
}
UNKNOWN: Final = "use another file if this persists"


class StoreError(LocalkubeError):
    """The file cannot be used; the text names it and says what to do. `transient`: trying again may help."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class DamagedError(StoreError):
    """The file is damaged. `salvageable`: all but its last changes can be read."""

    def __init__(self, message: str, *, salvageable: bool = False) -> None:
        super().__init__(message)
        self.salvageable = salvageable


def explain(path: str, error: sqlite3.Error) -> StoreError:
    """Return an error of SQLite in words for the user of the cluster."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    transient = code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    return StoreError(f"{path}: {error}: {ADVICE.get(code, UNKNOWN)}", transient=transient)
