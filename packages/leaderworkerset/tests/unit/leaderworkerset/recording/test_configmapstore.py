"""Tests that episodes in ConfigMaps are limited by size and age, and complete after a crash at any request."""

import asyncio
import gzip
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from testkit.inprocess import api
from testkit.transports import ForwardingTransport
from tests.unit.leaderworkerset.recording.test_filestore import episode

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, Transport
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, NAMESPACES
from leaderworkerset.api import labels
from leaderworkerset.api.episode import Episode, Outcome
from leaderworkerset.recording import configmapstore
from leaderworkerset.recording.configmapstore import (
    KEY,
    LARGEST,
    PREFIX,
    ConfigMapStore,
    decompress,
    episode_location,
    list_episodes,
)
from leaderworkerset.recording.episoderetention import EpisodeRetention

pytestmark = pytest.mark.slow

WEEK = timedelta(days=7)
RANDOM = Random(1)


def noise(lines: int = 100) -> tuple[str, ...]:
    """Return lines that hardly compress."""
    return tuple(RANDOM.randbytes(40).hex() for _ in range(lines))


async def opened(client: Client, max_per_set: int = 1 << 20, max_total: int = 8 << 20) -> ConfigMapStore:
    """Return an opened store."""
    store = ConfigMapStore(client, max_per_set=max_per_set, max_total=max_total, retention=WEEK)
    await store.open()
    return store


async def objects(client: Client) -> list[JSONObject]:
    """Return the ConfigMaps that contain episodes."""
    return [obj async for obj in list_episodes(client)]


async def read(client: Client) -> list[Episode]:
    """Return all episodes by number."""
    found = [decompress(obj) for obj in await objects(client)]
    return sorted(filter(None, found), key=lambda one: (one.lws, one.number))


def size(obj: JSONObject) -> int:
    """Return the data size of a ConfigMap in bytes, as the store computes it."""
    return len(obj["binaryData"][KEY]) * 3 // 4


async def test_episode_is_one_labeled_config_map() -> None:
    async with api() as client:
        store = await opened(client)
        kept = await store.store(episode(), "leader")
        (obj,) = await objects(client)
        assert (meta.name(obj), meta.labels(obj)) == (
            "lws-episode-leader",
            {labels.EPISODE: "true", labels.NAME: "web"},
        )
        assert meta.annotations(obj)[labels.EPISODE_OUTCOME] == "failed"
        assert "ownerReferences" not in obj["metadata"]
        assert decompress(obj) == kept == msgspec.structs.replace(episode(), number=1)
        done = msgspec.structs.replace(episode(), outcome=Outcome.RECREATED)
        assert (await store.store(done, "leader")).number == 1
        assert [one.outcome for one in await read(client)] == ["recreated"]
        assert store.has("leader")
        assert not store.has("another")


async def test_repeated_failures_stay_within_the_bound() -> None:
    async with api() as client:
        store = await opened(client, max_per_set=10_000)
        other = await store.store(episode("other"), "other")
        for number in range(200):
            assert (await store.store(episode(lines=("x",)), f"leader-{number}")).number == number + 1
        found = await objects(client)
        assert sum(map(size, found)) < 10_000 + 2_000
        assert (await read(client))[0] == other
        assert 10 < len(found) < 100
        again = await opened(client, max_per_set=10_000)
        assert again.has("leader-199")
        assert (await again.store(episode(lines=("x",)), "next")).number == 201


async def test_namespace_with_many_failures_is_pruned_first() -> None:
    async with api() as client:
        for name in ("few", "many"):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        store = await opened(client, max_total=60_000)
        await store.store(episode(namespace="few"), "few")
        for number in range(20):
            await store.store(episode(f"set-{number}", namespace="many", lines=noise()), f"leader-{number}")
        found = [(meta.namespace(obj), meta.labels(obj)[labels.NAME]) for obj in await objects(client)]
        assert ("few", "web") in found
        assert ("many", "set-19") in found
        assert ("many", "set-0") not in found


async def test_old_episodes_are_removed() -> None:
    async with api() as client:
        await (await opened(client)).store(episode("gone"), "first")
        store = await opened(client)
        await store.store(episode(), "second")
        await client.delete(CONFIG_MAPS, ObjectKey("default", PREFIX + "second"))  # somebody did
        now = SystemClock().now()
        await store.expire(now + WEEK - timedelta(minutes=1))
        assert len(await objects(client)) == 1
        await store.expire(now + WEEK + timedelta(minutes=1))
        assert await objects(client) == []
        assert not store.has("first")


async def test_oversized_episode_loses_its_earliest_lines() -> None:
    async with api() as client:
        store = await opened(client)
        lines = tuple(RANDOM.randbytes(2000).hex() for _ in range(200))
        kept = await store.store(episode(lines=lines), "leader")
        (log,) = kept.ranks[0].containers[0].logs
        assert log == lines[-len(log) :]
        assert 50 <= len(log) < 200
        assert kept.notes == (f"the episode was too large, so only the last {len(log)} lines of each log are stored",)
        (obj,) = await objects(client)
        assert size(obj) <= LARGEST + 2
        huge = msgspec.structs.replace(episode(), failure=RANDOM.randbytes(LARGEST).hex())
        with pytest.raises(ValueError, match="an episode without logs has"):
            await store.store(huge, "huge")


BAD = (
    {"metadata": {"annotations": {labels.EPISODE_NUMBER: "9" * 5000}}},
    {"metadata": {"annotations": {labels.EPISODE_GROUP: "../.."}}},
    {"metadata": {"annotations": None, "labels": {labels.EPISODE: ""}}},
    {"binaryData": {KEY: "AAAA"}},
    {"binaryData": None},
    {"binaryData": {KEY: None, "other": "AAAA"}},
)


async def test_foreign_config_maps_with_the_label_are_ignored() -> None:
    async with api() as client:
        store = await opened(client)
        for number, patch in enumerate(BAD):
            await store.store(episode(lines=()), f"bad-{number}")
            await client.patch(CONFIG_MAPS, ObjectKey("default", f"{PREFIX}bad-{number}"), patch, kind="merge")
        obj = (await objects(client))[0]
        foreign = {"name": "foreign", "namespace": "default", **{key: obj["metadata"][key] for key in ("labels",)}}
        await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": foreign})
        again = await opened(client)
        assert (await again.store(episode("fine"), "fine")).number == 1
        found = await objects(client)
        assert len([obj for obj in found if episode_location(obj) is not None]) == 4
        assert [one.lws for obj in found if episode_location(obj) and (one := decompress(obj))] == ["fine"]


def test_decompression_bomb_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configmapstore, "LONGEST", 1000)
    data = gzip.compress(msgspec.json.encode(episode()))
    obj = configmapstore.document(EpisodeRetention(Path(), 1, 1).locate(episode(), "x"), episode(), data)
    assert decompress(obj) is None


class Dies(ForwardingTransport):
    """A transport that fails permanently after the given number of requests."""

    def __init__(self, inner: Transport, sends: int) -> None:
        super().__init__(inner)
        self.sends = sends

    async def request(self, request: Request) -> Response:
        """Send the request, or fail."""
        if not self.sends:
            raise asyncio.CancelledError
        self.sends -= 1
        return await self.inner.request(request)


@pytest.mark.parametrize("sends", range(7))
async def test_manager_that_dies_leaves_complete_episodes(
    sends: int,
) -> None:
    async with api() as client:
        before = await opened(client, max_per_set=1 << 20)
        for number in range(6):
            await before.store(episode(lines=noise()), f"before-{number}")
        dying_transport = Dies(client._transport, sends)
        dying = Client(dying_transport)
        with suppress(asyncio.CancelledError):
            store = await opened(dying, max_per_set=15_000)
            for number in range(6):
                await store.store(episode(lines=noise()), f"dying-{number}")
        assert not dying_transport.sends
        assert len(await read(client)) == len(await objects(client))
        again = await opened(client, max_per_set=15_000)
        found = await objects(client)
        assert sum(map(size, found)) <= 15_000
        numbers = [one.number for one in await read(client)]
        assert len({*numbers}) == len(numbers)
        assert (await again.store(episode(lines=()), "last")).number == max(numbers) + 1


async def test_rejected_write_fails_only_its_episode() -> None:
    class Refusing(Client):
        async def apply(self, resource: Any, obj: JSONObject, **options: Any) -> JSONObject:
            raise ForbiddenError({"message": "configmaps is forbidden"})

    async with api() as client:
        store = await opened(Refusing(client._transport))
        with pytest.raises(ForbiddenError):
            await store.store(episode(), "leader")
        assert not store.has("leader")
