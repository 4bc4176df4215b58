"""Stores episodes as compressed ConfigMaps in the namespaces of their LeaderWorkerSets, with size and age limits.

Only the leader of the managers writes. An episode is one object and one write, so the process can crash at any time.
The ConfigMaps have no owner, because an episode outlives its set. They are deleted when they are too old, or when the
size limit is reached (`episoderetention.py`).
"""

import asyncio
import base64
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS
from leaderworkerset.api import labels
from leaderworkerset.api.episode import LINES, Episode, RecordedRank
from leaderworkerset.recording.episoderetention import FILE, NAME, EpisodeLocation, EpisodeRetention

PREFIX: Final = "lws-episode-"
KEY: Final = "episode.json.gz"
MANAGER: Final = "lws-recorder"

MEBIBYTE: Final = 1024 * 1024
LARGEST: Final = 256 * 1024
"""The maximum compressed size of an episode in bytes. API servers store up to 1 MiB."""

LONGEST: Final = 16 * MEBIBYTE
"""The maximum decompressed size of an episode in bytes, because other writers can store malicious data."""

PAGE: Final = 20
"""The page size for listing ConfigMaps."""

GZIP: Final = 31
"""The zlib `wbits` value for the gzip format."""


class ConfigMapStore:
    """Writes episodes. `open` must first read the existing episodes."""

    def __init__(self, client: Client, *, max_per_set: int, max_total: int, retention: timedelta) -> None:
        self._client = client
        self._bounds = (max_per_set, max_total)
        self._retention = retention
        self._episodes = EpisodeRetention(Path(), *self._bounds)
        self._created: dict[EpisodeLocation, datetime] = {}

    async def open(self) -> None:
        """Read the existing episodes, and delete episodes that exceed the limits."""
        sizes: dict[EpisodeLocation, int] = {}
        async for obj in list_episodes(self._client):
            place = episode_location(obj)
            if place is not None:
                sizes[place] = len(str((obj.get("binaryData") or {}).get(KEY) or "")) * 3 // 4
                self._created[place] = timestamps.parse(meta.metadata(obj)["creationTimestamp"])
        oldest_first = sorted(sizes, key=self._created.__getitem__)
        self._episodes = EpisodeRetention(Path(), *self._bounds, ((place, sizes[place]) for place in oldest_first))
        await self._remove(self._episodes.expired_episodes())

    def has(self, identity: str) -> bool:
        """Return whether an episode with this identity exists."""
        return self._episodes.has(identity)

    async def store(self, episode: Episode, identity: str) -> Episode:
        """Store or replace an episode. Return the stored episode with its number.

        Raise `KubeError` if it cannot be written, and `ValueError` if it is too large even without logs.
        """
        place = self._episodes.locate(episode, identity)
        kept, data = await asyncio.to_thread(compress, msgspec.structs.replace(episode, number=place.number))
        config_map = await self._client.apply(CONFIG_MAPS, document(place, kept, data), manager=MANAGER)
        self._created[place] = timestamps.parse(meta.metadata(config_map)["creationTimestamp"])
        self._episodes.put(place, len(data))
        await self._remove(self._episodes.expired_episodes())
        return kept

    async def expire(self, now: datetime) -> None:
        """Delete episodes that exceed the maximum age."""
        await self._remove([place for place, created in self._created.items() if now - created > self._retention])

    async def _remove(self, places: Iterable[EpisodeLocation]) -> None:
        for place in places:
            with suppress(NotFoundError):  # deleted by a different client
                await self._client.delete(CONFIG_MAPS, ObjectKey(place.namespace, PREFIX + place.identity))
            self._episodes.drop(place)
            self._created.pop(place, None)


def document(place: EpisodeLocation, episode: Episode, data: bytes) -> JSONObject:
    """Return the ConfigMap for an episode."""
    return {
        **CONFIG_MAPS.type_meta,
        "metadata": {
            "name": PREFIX + place.identity,
            "namespace": place.namespace,
            "labels": {labels.EPISODE: "true", labels.NAME: place.lws},
            "annotations": {
                labels.EPISODE_GROUP: place.group,
                labels.EPISODE_NUMBER: str(place.number),
                labels.EPISODE_OUTCOME: episode.outcome,
            },
        },
        "binaryData": {KEY: base64.b64encode(data).decode()},
    }


async def list_episodes(client: Client, namespace: str = "", lws: str = "") -> AsyncIterator[JSONObject]:
    """Yield the episode ConfigMaps in a namespace (empty for all) or of one LeaderWorkerSet, page by page."""
    selector = labels.EPISODE + (f",{labels.NAME}={lws}" if lws else "")
    token = ""
    while True:
        page = await client.list_page(Selection(CONFIG_MAPS, namespace, selector), limit=PAGE, token=token)
        for obj in page.items:
            yield obj
        token = page.token
        if not token:
            return


def episode_location(obj: JSONObject) -> EpisodeLocation | None:
    """Return the location of an episode, or None if the ConfigMap does not contain an episode."""
    annotations = meta.annotations(obj)
    names = (meta.namespace(obj), meta.labels(obj).get(labels.NAME, ""), annotations.get(labels.EPISODE_GROUP, ""))
    name = f"{annotations.get(labels.EPISODE_NUMBER, '')}-{meta.name(obj).removeprefix(PREFIX)}.json"
    match = FILE.fullmatch(name)
    number = decimals.natural(match["number"]) if match and all(map(NAME.fullmatch, names)) else None
    if match is None or number is None or not meta.name(obj).startswith(PREFIX):
        return None
    return EpisodeLocation(*names, number, match["identity"], Path(*names, name))


def compress(episode: Episode) -> tuple[Episode, bytes]:
    """Return the stored episode and its compressed data. Log lines are removed if the episode is too large.

    Raise `ValueError` if it is too large without logs.
    """
    lines, document = LINES, episode
    while len(data := zlib.compress(msgspec.json.encode(episode), wbits=GZIP)) > LARGEST:
        if not lines:
            raise ValueError(f"an episode without logs has {len(data)} bytes, but the limit is {LARGEST}")
        lines //= 2
        note = f"the episode was too large, so only the last {lines} lines of each log are stored"
        episode = msgspec.structs.replace(
            document, ranks=tuple(_shorten_log(rank, lines) for rank in document.ranks), notes=(*document.notes, note)
        )
    return episode, data


def decompress(obj: JSONObject) -> Episode | None:
    """Return the episode in a ConfigMap, or None if it is invalid."""
    try:
        data = base64.b64decode((obj.get("binaryData") or {})[KEY])
        reader = zlib.decompressobj(wbits=GZIP)
        text = reader.decompress(data, LONGEST)
        return None if reader.unconsumed_tail else msgspec.json.decode(text, type=Episode)
    except (KeyError, ValueError, RecursionError, zlib.error):  # binascii and msgspec raise subclasses of ValueError
        return None


def _shorten_log(rank: RecordedRank, lines: int) -> RecordedRank:
    containers = tuple(
        msgspec.structs.replace(container, logs=tuple(run[max(len(run) - lines, 0) :] for run in container.logs))
        for container in rank.containers
    )
    return msgspec.structs.replace(rank, containers=containers)
