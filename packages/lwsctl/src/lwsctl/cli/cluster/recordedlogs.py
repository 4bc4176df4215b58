"""Returns the last log lines that were recorded for replaced or deleted pods. Used by `lws logs`."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api.episode import Episode, RecordedRank
from leaderworkerset.api.groupname import GroupName
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.cluster import recordings
from lwsctl.cli.cluster.target import Session
from lwsctl.views.selection import Selection


class RecordedLog(Struct, frozen=True):
    """The last run of a container whose log lines are in a recorded failure."""

    episode: Episode
    rank: RecordedRank
    lines: Sequence[str]

    @property
    def place(self) -> str:
        """Return the rank as `group/rank`."""
        return f"{self.episode.group}/{self.rank.rank}"

    def note(self, lws: str) -> str:
        """Return a description of the source of the lines."""
        shows = f"`{lws} -n {self.episode.namespace} history {self.episode.label}`"
        if not self.lines:
            return f"note: {self.rank.pod} has no log lines before the failure at {self.episode.time}; see {shows}"
        return f"note: these log lines of {self.rank.pod} were recorded at {self.episode.time}; see {shows} for the complete record"


class RankRequest(Struct, frozen=True):
    """The requested ranks of a set and the container.

    If `ranks` is empty, all ranks are requested. If the container is None, the first container with log lines is
    used.
    """

    selection: Selection
    groups: frozenset[GroupName] = frozenset()
    ranks: frozenset[int] = frozenset()
    container: str | None = None

    def covers(self, group: str, rank: int) -> bool:
        """Return whether the request includes a rank."""
        is_selected = self.selection.group is None or str(self.selection.group) == group
        is_named = not self.groups or group in map(str, self.groups)
        return (
            is_selected and is_named and self.selection.rank in (None, rank) and (not self.ranks or rank in self.ranks)
        )


def is_specified(resource: Resource, obj: JSONObject, selection: Selection) -> bool:
    """Return whether the selected groups or ranks are part of the spec, so that missing pods will be created."""
    spec = meta.spec(obj)
    count = spec.get("replicas", 1) if resource == LEADERWORKERSETS else 0
    size = (spec.get("leaderWorkerTemplate") or {}).get("size", 1)
    is_known = selection.group < count if isinstance(selection.group, int) else bool(count)
    return is_known and (selection.rank is None or selection.rank < size)


async def read(session: Session, request: RankRequest) -> list[RecordedLog]:
    """Return the recorded logs of the requested ranks. If the records cannot be read, return no logs."""
    try:
        episodes = await recordings.read_session(session, session.namespace, request.selection)
    except APIError:
        return []
    return latest_logs(episodes, request)


def latest_logs(episodes: Sequence[Episode], request: RankRequest) -> list[RecordedLog]:
    """Return the latest lines of each requested rank, by group and rank. Episodes must be in chronological order.

    A rank without output has no lines, because its log is empty, not missing.
    """
    logs: dict[tuple[str, int], RecordedLog] = {}
    for episode in episodes:
        for rank in episode.ranks:
            lines = next(_last_lines(rank, request.container), None)
            key = episode.group, rank.rank
            is_newer = bool(lines) or (lines is not None and key not in logs)
            if lines is not None and is_newer and request.covers(*key):
                logs[key] = RecordedLog(episode, rank, lines)
    return [logs[key] for key in sorted(logs)]


def _last_lines(rank: RecordedRank, container: str | None) -> Iterator[Sequence[str]]:
    """Yield the last lines of each container.

    Failed containers are first, and containers without output are omitted.
    """
    own = [container_end for container_end in rank.containers if container in (None, container_end.name)]
    for container_end in sorted(own, key=lambda container: not any(end.exit_code for end in container.ends)):
        yield from [run for run in container_end.logs if run][-1:]
    if any(container_end.ends for container_end in own):
        yield ()
