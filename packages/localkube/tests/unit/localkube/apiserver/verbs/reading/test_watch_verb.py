"""Tests how watches start, send events, and stop."""

import asyncio

import pytest
from tests.unit.localkube.apiserver.harness import (
    CONFIG_MAPS,
    PODS,
    Api,
    StoppedClock,
    config_map,
    pod,
    run,
    served,
)

from localkube.apiserver.requests.watch import BUFFER, PIECE, Watcher
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


async def test_watch_without_a_version_starts_with_existing_objects(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    async with api.watch(CONFIG_MAPS) as watch:
        assert await watch.seen(1) == [("ADDED", "a")]
        await api.create(CONFIG_MAPS, config_map("b"))
        await api.update(f"{CONFIG_MAPS}/b", config_map("b", k="v"))
        await api.delete(f"{CONFIG_MAPS}/a")
        assert await watch.seen(3) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]


async def test_watch_from_a_version_shows_later_changes(api: Api) -> None:
    first = await api.create(CONFIG_MAPS, config_map("a"))
    await api.create(CONFIG_MAPS, config_map("b"))
    await api.create(PODS, pod("p"))
    await api.delete(f"{CONFIG_MAPS}/a")
    version = first["metadata"]["resourceVersion"]
    async with api.watch(CONFIG_MAPS, resourceVersion=version) as watch:
        assert await watch.seen(2) == [("ADDED", "b"), ("DELETED", "a")]
        await api.create(CONFIG_MAPS, config_map("c"))
        assert await watch.seen(1) == [("ADDED", "c")]


async def test_objects_entering_the_selection_are_added(api: Api) -> None:
    async with api.watch(CONFIG_MAPS, labelSelector="on=yes") as watch:
        await api.create(CONFIG_MAPS, config_map("a", labels={"on": "no"}, v="1"))
        await api.update(f"{CONFIG_MAPS}/a", config_map("a", labels={"on": "yes"}, v="2"))
        await api.update(f"{CONFIG_MAPS}/a", config_map("a", labels={"on": "yes"}, v="3"))
        left = await api.update(f"{CONFIG_MAPS}/a", config_map("a", labels={"on": "no"}, v="4"))
        await api.delete(f"{CONFIG_MAPS}/a")
        events = [await watch.next() for _ in range(3)]
        assert [event and event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        gone = events[2]
        assert gone is not None
        assert gone["object"]["data"] == {"v": "3"}
        assert gone["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


@pytest.mark.slow
def test_forgotten_version_is_expired() -> None:
    async def scenario(api: Api) -> None:
        for number in range(1300):
            await api.create(CONFIG_MAPS, config_map(f"m{number}"))
        answer = await api.send("GET", CONFIG_MAPS, watch="true", resourceVersion="5")
        code, reason, message = answer.refusal
        assert (code, reason) == (410, "Expired")
        assert message.startswith("too old resource version: 5 (")
        page = await api.get(CONFIG_MAPS, resourceVersion="5", resourceVersionMatch="Exact")
        assert page.refusal[:2] == (410, "Expired")

    run(scenario, Store(remembered=100))


async def test_table_columns_are_sent_once(api: Api) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    await api.create(CONFIG_MAPS, config_map("b"))
    answer = await api.send("GET", CONFIG_MAPS, headers=TABLE, watch="true", timeoutSeconds="0.0")
    assert answer.code == 400
    async with asyncio.timeout(5):
        one = await api.send("GET", CONFIG_MAPS, headers=TABLE)
    assert one["columnDefinitions"]


async def test_events_of_one_commit_share_their_bytes(api: Api) -> None:
    async with api.watch(PODS) as one, api.watch(PODS) as other:
        first, second = asyncio.ensure_future(one.seen(2)), asyncio.ensure_future(other.seen(2))
        await asyncio.gather(api.create(PODS, pod("a")), api.create(PODS, pod("b")))
        assert await first == await second == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.virtual_time
async def test_watch_closes_after_its_timeout_with_bookmarks() -> None:
    server = ApiServer(Store(), served(), StoppedClock())
    await server.start()
    api = Api(server, StoppedClock())
    query = {"timeoutSeconds": 150, "allowWatchBookmarks": "true", "resourceVersion": 1}
    async with api.watch(CONFIG_MAPS, **query) as watch:
        await api.create(PODS, pod("p"))
        seen = []
        while (event := await watch.next()) is not None:
            seen.append((event["type"], event["object"]["metadata"]["resourceVersion"]))
    assert seen == [("BOOKMARK", "5"), ("BOOKMARK", "5")]
    await server.close()


async def test_watches_close_with_the_server(api: Api) -> None:
    async with api.watch(CONFIG_MAPS) as watch:
        ending = asyncio.ensure_future(watch.next())
        await asyncio.sleep(0)
        api.server.close_watches()
        assert await ending is None
    async with api.watch(CONFIG_MAPS) as late:
        assert await late.next() is None


async def test_slow_watcher_is_closed_with_expired() -> None:
    watcher = Watcher()
    watcher.push(b"x" * BUFFER)
    watcher.push(b"y")
    watcher.push(b"never")
    last = await watcher.next_lines()
    assert last is not None
    assert last.startswith(b'{"type":"ERROR"')
    assert b'"code":410' in last
    assert await watcher.next_lines() is None


async def test_watcher_receives_pushed_bytes_in_pieces() -> None:
    """A connection without a reader buffers a limited number of bytes, even if many bytes are sent at once."""
    pushed = [b"a" * 10, b"b" * (3 * PIECE + 7), b"c" * (PIECE // 2), b"d" * (PIECE // 2), b"e" * 5]

    watcher = Watcher()
    for chunk in pushed:
        watcher.push(chunk)
    watcher.close(b"z")
    taken = []
    while (piece := await watcher.next_lines()) is not None:
        taken.append(piece)
    assert b"".join(taken) == b"".join(pushed) + b"z"
    assert max(map(len, taken)) == PIECE
    assert len(taken) == 6
