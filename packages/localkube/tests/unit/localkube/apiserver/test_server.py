"""Tests the errors that clients receive if the store fails."""

import os
import sqlite3
from pathlib import Path

import pytest
from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, Api, StoppedClock, config_map, run, served
from tests.unit.localkube.apiserver.storage.test_store import file_size_limit

from kuberuntime.client.transport import Response
from localkube.apiserver.admission.webhook_transport import WebhookRequest
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import Store
from localkube.apiserver.storage.storeerrors import StoreError


class Unclosable:
    """A webhook transport whose `close` method fails."""

    async def request(self, request: WebhookRequest) -> Response:
        raise AssertionError(request)

    async def close(self) -> None:
        raise RuntimeError("a socket that is stuck")


async def test_store_is_closed_even_if_webhook_connections_fail(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    server = ApiServer(Store(path), served(), StoppedClock(), ServerOptions(webhooks=Unclosable()))
    await server.start()
    with pytest.raises(RuntimeError, match="stuck"):
        await server.close()
    Store(path).close()


@pytest.mark.slow
def test_locked_file_is_temporarily_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    async def scenario(api: Api) -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        code, reason, message = (await api.create(CONFIG_MAPS, config_map())).refusal
        assert (code, reason) == (503, "ServiceUnavailable")
        assert message == f"{path}: database is locked. Close the process that uses the file"
        assert (await api.get(CONFIG_MAPS)).code == 200
        other.execute("ROLLBACK")
        other.close()
        assert (await api.create(CONFIG_MAPS, config_map())).code == 201

    run(scenario, Store(path))


def test_full_disk_fails_writes_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    async def scenario(api: Api) -> None:
        await api.create(CONFIG_MAPS, config_map("old"))
        async with api.watch(CONFIG_MAPS) as watch:
            assert await watch.seen(1) == [("ADDED", "old")]
            with file_size_limit(os.stat(f"{path}-wal").st_size):  # noqa: PTH116
                code, reason, message = (await api.create(CONFIG_MAPS, config_map("new", k="x" * 100_000))).refusal
            assert (code, reason) == (500, "InternalError")
            assert message.startswith(f"Internal error occurred: {path}: ")
            assert message.endswith("Stored objects are intact")
            names = [item["metadata"]["name"] for item in (await api.get(CONFIG_MAPS))["items"]]
            assert names == ["old"]
            await api.create(CONFIG_MAPS, config_map("later"))
            assert await watch.seen(1) == [("ADDED", "later")]

    run(scenario, Store(path))


def test_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    async def fill(api: Api) -> None:
        for number in range(30):
            await api.create(CONFIG_MAPS, config_map(f"m{number}", k="x" * 5000))

    run(fill, Store(path))
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    with pytest.raises(StoreError, match=rf"{path}: the file is damaged: (Page|Tree) "):
        run(fill, Store(path))
