"""Tests DELETE requests for a collection."""

import asyncio
import tracemalloc

import pytest
from tests.unit.localkube.apiserver.harness import CONFIG_MAPS, Api, config_map, run

from localkube.apiserver.verbs.writing.delete import BATCH


def test_other_requests_are_served_during_a_large_deletion() -> None:
    """A user who deletes hundreds of objects must not block other users."""

    async def scenario(api: Api) -> None:
        for number in range(3 * BATCH):
            await api.create(CONFIG_MAPS, config_map(f"c-{number:03}"))
        served = 0

        async def others() -> None:
            nonlocal served
            while True:
                await api.get("/api/v1/namespaces/default")
                served += 1
                await asyncio.sleep(0)

        asking = asyncio.create_task(others())
        answer = await api.delete(CONFIG_MAPS)
        asking.cancel()
        assert len(answer["items"]) == 3 * BATCH
        assert served > BATCH

    run(scenario)


async def test_objects_created_during_the_deletion_are_kept(api: Api) -> None:
    """A client that creates objects faster than they are deleted must not delay the deletion forever."""
    await api.create(CONFIG_MAPS, config_map("a"))
    await api.create(CONFIG_MAPS, config_map("b"))
    deleting = asyncio.create_task(api.delete(CONFIG_MAPS))
    while (await api.get(f"{CONFIG_MAPS}/a")).code == 200:  # noqa: ASYNC110 - each turn is a request
        await asyncio.sleep(0)
    await api.create(CONFIG_MAPS, config_map("z"))
    assert [item["metadata"]["name"] for item in (await deleting)["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in (await api.get(CONFIG_MAPS))["items"]] == ["z"]


@pytest.mark.slow
def test_large_collection_is_read_in_batches() -> None:
    """Objects use much more memory than their JSON, so they are read in batches."""
    variables = {f"key-{number}": "x" for number in range(200)}

    async def scenario(api: Api) -> None:
        for number in range(8 * BATCH):
            await api.create(CONFIG_MAPS, config_map(f"c-{number:03}") | {"data": variables})
        tracemalloc.start()
        try:
            answer = await api.delete(CONFIG_MAPS, labelSelector="absent=yes")
            peak = tracemalloc.get_traced_memory()[1]
            before = tracemalloc.get_traced_memory()[0]
            whole = await api.get(CONFIG_MAPS)
            size = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert answer["items"] == []
        assert len(whole["items"]) == 8 * BATCH
        assert peak < size / 2

    run(scenario)
