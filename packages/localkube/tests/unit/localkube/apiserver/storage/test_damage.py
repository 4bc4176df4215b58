"""Tests whether the API server starts with a damaged store.

The store either starts with correct data, or fails and does not change the file and the log.
"""

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from localkube.apiserver.storage import database
from localkube.apiserver.storage.store import Store, StoreKey
from localkube.apiserver.storage.storeerrors import DamagedError, StoreError

pytestmark = pytest.mark.slow

OBJECTS = 60
Contents = list[list[bytes]]


def key(number: int) -> StoreKey:
    return StoreKey("pods", f"ns-{number % 3}", f"pod-{number}")


async def populate(store: Store, turns: int = OBJECTS) -> list[Contents]:
    """Create, update and delete objects. Return the store contents after each commit."""
    states = [contents(store)]
    for number in range(turns):
        obj = {"metadata": {"name": key(number).name}, "value": "x" * (37 * number % 900)}
        created = store.create(key(number), obj)
        if number % 3 == 0:
            created = store.update(key(number), created | {"value": "y"}, created)
        if number % 5 == 0:
            store.delete(key(number), created)
        await store.wait_committed()
        states.append(contents(store))
    return states


def contents(store: Store) -> Contents:
    """Return the state that a reader observes, which consists of the objects and the watch history."""
    return [list(store.list("pods")), [change.value for change in store.changes_since(store.compacted, "pods")]]


def abandon(store: Store) -> None:
    """Release the lock without changing files, in the same way as the kernel after a process is killed."""
    assert store._lock is not None
    store._lock.release()


def files(directory: Path) -> dict[str, bytes | None]:
    """Return all files except the lock and the log index, which contain no data."""
    return {
        path.name: path.read_bytes() if path.is_file() else None
        for path in directory.iterdir()
        if not path.name.endswith((".lock", "-shm"))
    }


def start(path: Path) -> Contents | None:
    """Start and stop the store. Return None if the start fails, which must not change any file."""
    before = files(path.parent)
    try:
        store = Store(path)
    except StoreError:
        assert files(path.parent) == before
        return None
    try:
        return contents(store)
    finally:
        store.close()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Contents]:
    """Return the file and the content of a closed store."""
    path = tmp_path_factory.mktemp("stopped") / "state.db"

    async def scenario() -> Contents:
        store = Store(path)
        states = await populate(store)
        store.close()
        return states[-1]

    return path, asyncio.run(scenario())


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Contents]]:
    """Return the file and the log of a killed store, and its content after each commit."""
    source = tmp_path_factory.mktemp("running")
    target = tmp_path_factory.mktemp("killed")

    async def scenario() -> list[Contents]:
        store = Store(source / "state.db")
        states = await populate(store)
        for name in ("state.db", "state.db-wal"):
            shutil.copy(source / name, target / name)
        store.close()
        return states

    return target / "state.db", asyncio.run(scenario())


def copied(path: Path, directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(path.parent, directory)
    return directory / path.name


def flip(path: Path, position: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def positions(seed: int, size: int, count: int, *, header: range) -> Iterator[tuple[int, int]]:
    """Yield positions and bits in the file header, and at other random positions."""
    chosen = random.Random(seed)
    for position in header:
        yield position, chosen.randrange(8)
    for _ in range(count):
        yield chosen.randrange(size), chosen.randrange(8)


@pytest.mark.parametrize("seed", range(2))
def test_flipped_bit_is_detected_or_harmless(seed: int, stopped: tuple[Path, Contents], tmp_path: Path) -> None:
    original, expected = stopped
    refused = 0
    for position, bit in positions(seed, original.stat().st_size, 15, header=range(seed, 100, 2)):
        path = copied(original, tmp_path / "state")
        flip(path, position, bit)
        found = start(path)
        assert found in (None, expected), f"byte {position}, bit {bit}"
        refused += found is None
    assert refused > 20


@pytest.mark.parametrize("seed", range(1))
def test_truncated_file_is_detected(seed: int, stopped: tuple[Path, Contents], tmp_path: Path) -> None:
    original, _ = stopped
    size = original.stat().st_size
    chosen = random.Random(seed)
    for length in [0, 1, 99, 100, 4096, size - 1, *(chosen.randrange(size) for _ in range(15))]:
        path = copied(original, tmp_path / "state")
        os.truncate(path, length)
        assert start(path) is None, length


@pytest.mark.parametrize("seed", range(1))
def test_flipped_bit_next_to_a_log_is_detected_or_harmless(
    seed: int, killed: tuple[Path, list[Contents]], tmp_path: Path
) -> None:
    original, states = killed
    for position, bit in positions(seed, original.stat().st_size, 10, header=range(16, 100, 2)):
        path = copied(original, tmp_path / "state")
        flip(path, position, bit)
        assert start(path) in (None, states[-1]), f"byte {position}, bit {bit}"


@pytest.mark.parametrize("seed", range(2))
def test_log_with_a_flipped_bit_is_rejected_or_an_earlier_state(
    seed: int, killed: tuple[Path, list[Contents]], tmp_path: Path
) -> None:
    original, states = killed
    size = original.with_name("state.db-wal").stat().st_size
    chosen = random.Random(seed)
    for position in [*range(seed, 32, 2), *(chosen.randrange(size) for _ in range(10))]:
        path = copied(original, tmp_path / "state")
        flip(path.with_name("state.db-wal"), position, chosen.randrange(8))
        assert start(path) in (None, *states), f"byte {position}"


def test_truncated_log_restores_an_earlier_state(killed: tuple[Path, list[Contents]], tmp_path: Path) -> None:
    original, states = killed
    size = original.with_name("state.db-wal").stat().st_size
    chosen = random.Random(1)
    for length in [0, 31, 32, 33, size - 1, *(chosen.randrange(size) for _ in range(20))]:
        path = copied(original, tmp_path / "state")
        os.truncate(path.with_name("state.db-wal"), length)
        assert start(path) in states, length


def test_killed_store_starts_with_all_committed_writes(killed: tuple[Path, list[Contents]], tmp_path: Path) -> None:
    original, states = killed
    path = copied(original, tmp_path / "state")
    assert start(path) == states[-1]
    assert start(path) == states[-1]


def remove(path: Path) -> None:
    path.unlink()


def set_format(number: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"PRAGMA user_version = {number}")
        database.close()

    return change


def change_row(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(statement)
        database.close()

    return change


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.write_bytes(b""), "missing or empty"),
        (lambda path: path.write_bytes(b"no database" * 1000), "file is not a database"),
        (set_format(database.FORMAT + 1), "created by a newer version"),
        (set_format(database.FORMAT - 1), f"database format {database.FORMAT - 1} is not supported"),
        (change_row("DROP TABLE counters"), "the tables do not have format"),
        (change_row("DELETE FROM counters WHERE name = 'compacted'"), "checksum mismatch in counter compacted"),
        (
            change_row("UPDATE counters SET value = 7 WHERE name = 'compacted'"),
            "checksum mismatch in counter compacted",
        ),
        (change_row("UPDATE history SET value = x'7b7d' WHERE revision = 20"), "checksum mismatch in revision 20"),
        (change_row("UPDATE history SET value = 'text' WHERE revision = 20"), "checksum mismatch in revision 20"),
        (change_row("DELETE FROM objects WHERE name = 'pod-8'"), "the objects do not match their history"),
        (
            change_row("UPDATE objects SET name = 'other' WHERE name = 'pod-8'"),
            "the objects do not match their history",
        ),
    ],
)
def test_damage_is_named_in_the_error(
    harm: Callable[[Path], None], said: str, stopped: tuple[Path, Contents], tmp_path: Path
) -> None:
    path = copied(stopped[0], tmp_path / "state")
    harm(path)
    (path.parent / "state.db.lock").touch()
    before = files(path.parent)
    with pytest.raises(StoreError, match=said):
        Store(path)
    assert files(path.parent) == before


@pytest.mark.parametrize("harm", [remove, lambda path: path.write_bytes(b"")], ids=["missing", "empty"])
def test_log_without_its_file_is_kept(
    harm: Callable[[Path], object], killed: tuple[Path, list[Contents]], tmp_path: Path
) -> None:
    path = copied(killed[0], tmp_path / "state")
    harm(path)
    before = files(path.parent)
    with pytest.raises(DamagedError, match=r"state\.db: the file is missing or empty"):
        Store(path)
    assert files(path.parent) == before


AS_NOBODY = """
import os, sys, urllib.parse  # what is imported late, while the library can be read
from localkube.apiserver.storage.storeerrors import StoreError
from localkube.apiserver.storage.store import Store
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    Store(sys.argv[1])
except StoreError as error:
    print(error)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a directory that all users can access."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory) / "state"


def refused_to_nobody(path: Path) -> str:
    """Return the error for an unprivileged user, because root may read and write all files."""
    path.parent.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True, check=True)
    return done.stdout


def test_unreadable_file_is_rejected(stopped: tuple[Path, Contents], public: Path) -> None:
    path = copied(stopped[0], public)
    (path.parent / "state.db.lock").touch()
    (path.parent / "state.db.lock").chmod(0o666)
    path.chmod(0o000)
    assert (
        "state.db: unable to open database file. Make sure that its directory exists and is writable"
        in refused_to_nobody(path)
    )


def test_read_only_file_is_rejected_at_the_start(stopped: tuple[Path, Contents], public: Path) -> None:
    path = copied(stopped[0], public)
    (path.parent / "state.db.lock").touch()
    (path.parent / "state.db.lock").chmod(0o666)
    path.chmod(0o444)
    before = files(path.parent)
    assert "Make the file and its directory writable" in refused_to_nobody(path)
    assert files(path.parent) == before


def test_read_only_directory_is_rejected(stopped: tuple[Path, Contents], public: Path) -> None:
    path = copied(stopped[0], public)
    (path.parent / "state.db.lock").unlink(missing_ok=True)
    path.chmod(0o444)
    assert "state.db.lock: Permission denied. Use a writable directory" in refused_to_nobody(path)


def test_file_locked_by_another_program_is_rejected_soon(stopped: tuple[Path, Contents], tmp_path: Path) -> None:
    path = copied(stopped[0], tmp_path / "state")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(StoreError, match="Close the process that uses the file"):
            Store(path)
    finally:
        other.close()


def test_new_file_is_private_with_any_umask(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        store = Store(tmp_path / "state.db")
    finally:
        os.umask(before)
    try:
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.suffix != ".lock"}
        assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600, "state.db-reserve": 0o600}
    finally:
        store.close()
