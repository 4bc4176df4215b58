"""Reads recorded failures from files for a local cluster, or from ConfigMaps for other clusters."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.episode import Episode
from leaderworkerset.decisions.episoderecords import (
    EpisodePlace,
    episode_place,
    episode_places,
    read_episode,
    stored_episodes,
    unpacked_episode,
)
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.cluster.target import Session, Target
from lwsctl.cli.errors import CommandError
from lwsctl.observation.evidence import ReadEpisodes
from lwsctl.views.selection import Selection

NAMESPACE: Final = "default"
"""The namespace in the kubeconfig of local clusters."""

Recorded: TypeAlias = tuple[EpisodePlace, Episode | None]
"""An episode and its location. If the episode cannot be parsed, it is None."""


def episode_directory(target: Target) -> Path | None:
    """Return the directory of the selected cluster's episodes, or None if it is not a local cluster."""
    if target.local:
        own: ClusterDirectory | None = clusterdirectories.cluster_directory(target.local)
    else:
        own = clusterdirectories.find_by_kubeconfig(Path(target.kubeconfig or os.environ.get("KUBECONFIG", "")))
    return None if own is None else own.records


async def read(target: Target, *, everywhere: bool, selection: Selection | None) -> list[Recorded]:
    """Return the episodes of the selected cluster for one or all namespaces, or for one set or group."""
    root = episode_directory(target)
    if root is not None:
        return read_files(root, "" if everywhere else target.namespace or NAMESPACE, selection)
    if target.local:
        raise CommandError(
            f"cluster {target.local} does not exist on this machine; use `lws clusters` to list local clusters"
        )
    async with target.session() as session:
        return await read_cluster(session.client, "" if everywhere else session.namespace, selection)


async def read_session(session: Session, namespace: str, selection: Selection | None = None) -> list[Episode]:
    """Return the valid episodes in chronological order, for all or one namespace, or for one set or group.

    Raise `APIError` if the user does not have permission to read ConfigMaps.
    """
    root = session.history
    records = (
        await read_cluster(session.client, namespace, selection)
        if root is None
        else await asyncio.to_thread(read_files, root, namespace, selection)
    )
    return sort_episodes(records)


def episode_reader(session: Session) -> ReadEpisodes:
    """Return a function that reads the episodes of a LeaderWorkerSet in the selected cluster."""

    async def read(key: ObjectKey) -> list[Episode]:
        return await read_session(session, key.namespace, Selection(key.name))

    return read


def read_once(read: ReadEpisodes) -> ReadEpisodes:
    """Return a function that reads the episodes of each LeaderWorkerSet at most once."""
    known: dict[ObjectKey, Sequence[Episode]] = {}

    async def read_once(key: ObjectKey) -> Sequence[Episode]:
        if key not in known:
            known[key] = await read(key)
        return known[key]

    return read_once


def read_run(place: ClusterDirectory, namespace: str | None, selection: Selection) -> list[Episode]:
    """Return the valid episodes of a completed run in chronological order."""
    return sort_episodes(read_files(place.history, namespace or NAMESPACE, selection))


def sort_episodes(records: Sequence[Recorded]) -> list[Episode]:
    """Return the valid episodes of the records, in chronological order."""
    episodes = (episode for _, episode in records if episode is not None)
    return sorted(episodes, key=lambda episode: (episode.time, episode.number))


def read_files(root: Path, namespace: str, selection: Selection | None = None) -> list[Recorded]:
    """Return the episodes in files."""
    return [(place, read_episode(place)) for place in episode_places(root) if _is_selected(place, namespace, selection)]


async def read_cluster(client: Client, namespace: str, selection: Selection | None = None) -> list[Recorded]:
    """Return the episodes in ConfigMaps."""
    return [
        (place, unpacked_episode(obj))
        async for obj in stored_episodes(client, namespace, selection.name if selection else "")
        if (place := episode_place(obj)) and _is_selected(place, namespace, selection)
    ]


def _is_selected(place: EpisodePlace, namespace: str, selection: Selection | None) -> bool:
    return (
        namespace in ("", place.namespace)
        and (selection is None or selection.name == place.lws)
        and (selection is None or selection.group is None or str(selection.group) == place.group)
    )
