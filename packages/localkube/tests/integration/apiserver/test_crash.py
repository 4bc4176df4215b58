"""Tests that the stored data is preserved if the process of the store is killed.

Acknowledged writes are preserved, and revisions continue.
"""

import itertools
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from localkube.apiserver.storage.store import Store, StoreKey
from localkube.apiserver.storage.storeerrors import StoreError

pytestmark = pytest.mark.slow

WRITER = """
import asyncio, sys
from localkube.apiserver.storage.storeerrors import StoreError
from localkube.apiserver.storage.store import Store, StoreKey

async def write(store, number):
    key = StoreKey("pods", "default", f"{sys.argv[2]}-{number}")
    obj = store.create(key, {"metadata": {"name": key.name}, "value": "x" * 2000})
    obj = store.update(key, obj | {"value": "y" * 2000}, obj)
    await store.wait_committed()
    print(key.name, obj["metadata"]["resourceVersion"], flush=True)

async def main():
    store = Store(sys.argv[1], remembered=2000)
    number = 0
    while True:
        await asyncio.gather(*(write(store, number + one) for one in range(8)))
        number += 8

asyncio.run(main())
"""


def start(path: Path, prefix: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(path), prefix]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def kill_after(writer: subprocess.Popen[str], acknowledgements: int) -> dict[str, int]:
    """Read `count` acknowledgements, kill the writer, and return everything that it sent."""
    assert writer.stdout is not None
    lines = list(itertools.islice(writer.stdout, acknowledgements))
    writer.send_signal(signal.SIGKILL)
    lines += [line for line in writer.stdout if line.endswith("\n")]
    writer.wait()
    writer.stdout.close()
    return {name: int(revision) for name, revision in (line.split() for line in lines)}


def test_acknowledged_writes_survive_every_kill(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "cluster.db", dict[str, int]()
    for life, patience in enumerate((1, 40, 333, 1500)):
        acknowledged |= kill_after(start(path, f"life-{life}"), patience)
        store = Store(path)
        objects = [msgspec.json.decode(row) for row in store.list("pods")]
        found = {one["metadata"]["name"]: int(one["metadata"]["resourceVersion"]) for one in objects}
        assert found.items() >= acknowledged.items()
        assert all(set(one["value"]) == {"y"} for one in objects if one["metadata"]["name"] in acknowledged)
        assert store.revision >= max(acknowledged.values())
        assert len(set(found.values())) == len(found)
        store.close()


async def test_store_is_locked_only_while_its_process_runs(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    writer = start(path, "first")
    assert writer.stdout is not None
    writer.stdout.readline()
    with pytest.raises(StoreError, match=f"in use by process {writer.pid}. Stop it, or use a different file"):
        Store(path)
    kill_after(writer, 1)
    store = Store(path)
    store.create(StoreKey("pods", "default", "after"), {"metadata": {"name": "after"}})
    await store.wait_committed()
    store.close()
