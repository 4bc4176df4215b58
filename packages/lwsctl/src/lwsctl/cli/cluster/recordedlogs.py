"""The recorded last lines of ranks with new or deleted pods, which `lws logs` prints without a current log."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.episode import ContainerEnd, Episode, RankEnd
from leaderworkerset.api.groupname import GroupName
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.cluster import recordings
from lwsctl.cli.cluster.target import Session
from lwsctl.views.selection import Selection


class RecordedLog(Struct, frozen=True):
    """The last run of a container for which a recorded failure has log lines."""

    episode: Episode
    rank: RankEnd
    lines: Sequence[str]

    @property
    def place(self) -> str:
        """Return `group/rank`."""
        return f"{self.episode.group}/{self.rank.rank}"

    def note(self, lws: str) -> str:
        """Return where the lines are from."""
        shows = f"`{lws} -n {self.episode.namespace} history {self.episode.place}`"
        if not self.lines:
            return f"note: {self.rank.pod} printed nothing before the failure of {self.episode.time}; {shows} shows it"
        return f"note: recorded last log lines of {self.rank.pod}, of {self.episode.time}; {shows} shows all of that failure"


class RankRequest(Struct, frozen=True):
    """The ranks (none: all) of a set, and the container (None: the first one with lines)."""

    selection: Selection
    groups: frozenset[GroupName] = frozenset()
    ranks: frozenset[int] = frozenset()
    container: str | None = None

    def covers(self, group: str, rank: int) -> bool:
        """Return whether a rank is wanted."""
        is_selected = self.selection.group is None or str(self.selection.group) == group
        is_named = not self.groups or group in map(str, self.groups)
        return (
            is_selected and is_named and self.selection.rank in (None, rank) and (not self.ranks or rank in self.ranks)
        )


def is_specified(resource: Resource, obj: JSONObject, selection: Selection) -> bool:
    """Return whether the chosen groups or ranks are part of the specification: without a pod, they are about to be created."""
    spec = meta.spec(obj)
    count = spec.get("replicas", 1) if resource == LEADERWORKERSETS else 0
    size = (spec.get("leaderWorkerTemplate") or {}).get("size", 1)
    is_known = selection.group < count if isinstance(selection.group, int) else bool(count)
    return is_known and (selection.rank is None or selection.rank < size)


async def read(session: Session, request: RankRequest) -> list[RecordedLog]:
    """Return the recorded logs of the requested ranks; nothing if the cluster has no readable records."""
    try:
        episodes = await recordings.of_session(session, session.namespace, request.selection)
    except APIError:
        return []
    return newest(episodes, request)


def newest(episodes: Sequence[Episode], request: RankRequest) -> list[RecordedLog]:
    """Return the newest lines of each requested rank, by group and rank; the episodes are in order of time.

    A rank that never printed anything has no lines: the log of its program is empty, and not missing.
    """
    logs: dict[tuple[str, int], RecordedLog] = {}
    for episode in episodes:
        for rank in episode.ranks:
            lines = next(_lines(rank, request.container), None)
            key = episode.group, rank.rank
            is_newer = bool(lines) or (lines is not None and key not in logs)
            if lines is not None and is_newer and request.covers(*key):
                logs[key] = RecordedLog(episode, rank, lines)
    return [logs[key] for key in sorted(logs)]


def _lines(rank: RankEnd, container: str | None) -> Iterator[Sequence[str]]:
    """Yield the lines of the last run of each container that has some, failed containers first; none if it printed nothing."""
    own = [container_end for container_end in rank.containers if container in (None, container_end.name)]
    for container_end in sorted(own, key=lambda container_end: not _failed(container_end)):
        yield from [run for run in container_end.logs if run][-1:]
    if any(container_end.ends for container_end in own):
        yield ()


def _failed(container: ContainerEnd) -> bool:
    return any(end.exit_code for end in container.ends)
