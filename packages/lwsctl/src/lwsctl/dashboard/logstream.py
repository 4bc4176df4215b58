"""Streams the logs of several ranks as JSON lines.

Each line has the rank, the time, the text, and whether it contains an error.

Past lines are first, followed by new lines while the page is open, including lines after restarts and broken
connections. A slow browser delays only its stream, and at most `WAITING` lines are buffered. Pages show lines as
text, without terminal colors, and only the last state of progress bars.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from kuberuntime import timeouts
from kuberuntime.cache.informer import Informer
from kuberuntime.errors import KubeError
from kuberuntime.objects import errorlines, meta, untrustedtext
from kuberuntime.objects.errorlines import Strength
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import labels
from leaderworkerset.api.groupname import GroupName, group_and_rank
from lwsctl.dashboard.livemodel import LiveModel
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.disaggregatedset import Owners, rank_path
from lwsctl.model.groups import Rank, rank_of
from lwsctl.observation.logfollower import LogFollower, Streams
from lwsctl.observation.podlogs import PodLogOptions

MOST_STREAMS: Final = 64
"""The maximum number of ranks whose logs a page follows."""

TAIL: Final = 500
MOST_TAIL: Final = 8000
"""The number of past lines per rank, and the maximum number that a page can request."""

FAILED: Final = "failed"
"""The selection of all ranks with a problem or a restart."""

CHOICE: Final = re.compile(r"(?:(?:\*|[-0-9a-z]*[a-z][-0-9a-z]*)/)?(\*|[0-9a-f]{1,40})/(\*|[0-9]{1,9})")

WAITING: Final = 2000
BETWEEN_SIGNS: Final = 5.0
"""The time in seconds without lines after which an empty line is sent, to check the connection."""

LONGEST_LINE: Final = 16_384
"""The maximum number of bytes that are shown of a line. Containers can print binary data."""


class RankChoice(msgspec.Struct, frozen=True):
    """The selected ranks as `GROUP/RANK`, `GROUP/*`, `*/RANK` or `failed`, optionally with the prefix `ROLE/`.

    The default is all leaders.
    """

    choices: frozenset[str] = frozenset()

    def covers(self, rank: Rank, owners: Sequence[str] = ()) -> bool:
        """Return whether a rank is selected.

        >>> ranks = [Rank(group=group, index=index, pod="", state="Running") for group in (0, 1) for index in (0, 1)]
        >>> [rank.place for rank in ranks if RankChoice(frozenset({"1/*"})).covers(rank)]
        ['1/0', '1/1']
        """
        has_failed = FAILED in self.choices and bool(rank.restarts or rank.is_problem)
        return has_failed or self.names(rank.group, rank.index, owners)

    def names(self, group: GroupName, index: int, owners: Sequence[str] = ()) -> bool:
        """Return whether a path is selected, regardless of the state of the rank."""
        places = {f"{group}/{index}", f"{group}/*", f"*/{index}", "*/*"}
        owned = {f"{owner}/{place}" for owner in ("*", *owners) for place in places}
        return not self.choices.isdisjoint(places | owned)


LEADERS: Final = RankChoice(frozenset({"*/0"}))


def parse(texts: Sequence[str]) -> RankChoice | None:
    """Parse rank selections. Return None if a selection is invalid or there are too many."""
    are_valid = all(text == FAILED or CHOICE.fullmatch(text) for text in texts)
    return RankChoice(frozenset(texts)) if are_valid and len(texts) <= MOST_STREAMS else None


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks of a LeaderWorkerSet or DisaggregatedSet (`is_disaggregatedset`), and the number of past lines per rank."""

    key: ObjectKey
    is_disaggregatedset: bool = False
    ranks: RankChoice = LEADERS
    tail: int = TAIL

    def owners(self, snapshot: Snapshot) -> Owners:
        """Return the LeaderWorkerSet names that rank paths contain."""
        if not self.is_disaggregatedset:
            return {self.key: ()}
        return {view.key: names for view, names in snapshot.members(self.key, is_disaggregatedset=True)}

    def covers(self, pod: JSONObject, owners: Owners) -> bool:
        """Return whether a pod is selected."""
        place, names = group_and_rank(pod), owners.get(_owner_key(pod))
        if place is None or names is None:
            return False
        return self.ranks.names(*place, names) or (FAILED in self.ranks.choices and self.ranks.covers(rank_of(pod)))


class CurrentOwners:
    """The LeaderWorkerSet names that rank paths contain. They are determined once for each snapshot."""

    def __init__(self, model: LiveModel, request: LogRequest) -> None:
        self._model = model
        self._request = request
        self._snapshot = model.snapshot
        self._owners = request.owners(model.snapshot)

    def read(self) -> Owners:
        """Return the names in the current snapshot."""
        if self._model.snapshot is not self._snapshot:
            self._snapshot = self._model.snapshot
            self._owners = self._request.owners(self._snapshot)
        return self._owners


class SharedPods(msgspec.Struct, frozen=True):
    """The source of pods for following logs, based on the shared model.

    `object` is None after the set was deleted.
    """

    model: LiveModel
    request: LogRequest

    @property
    def pods(self) -> Informer:
        """Return the informer for all pods."""
        return self.model.everything.pods

    @property
    def object(self) -> JSONObject | None:
        """Return the set."""
        if not self.request.is_disaggregatedset:
            return self.model.everything.sets.store.get(self.request.key)
        set_view = self.model.snapshot.find_disaggregatedset(self.request.key)
        return None if set_view is None else set_view.object


class LineQueue:
    """Collects lines until the browser reads them. If there are too many lines, the excess is dropped and counted."""

    def __init__(self, owners: Callable[[], Owners] = dict) -> None:
        self._owners = owners
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(WAITING)
        self._dropped = 0

    def line(self, pod: JSONObject, line: bytes) -> None:
        """Add a line with its time."""
        stamp, _, text = line.partition(b" ")
        place = group_and_rank(pod) or ("?", "?")
        content = untrustedtext.clean(text[:LONGEST_LINE].decode(errors="replace"))
        entry: JSONObject = {
            "rank": rank_path(f"{place[0]}/{place[1]}", self._owners().get(_owner_key(pod), ())),
            "time": stamp.decode(errors="replace"),
            "text": content,
        }
        self._put(entry | ({"error": True} if errorlines.error_strength(content) is Strength.ERROR else {}))

    def note(self, text: str) -> None:
        """Add a message about the stream."""
        self._put({"note": text})

    @property
    def has_lines(self) -> bool:
        """Return whether there are any unread lines."""
        return not self._lines.empty()

    async def read(self, seconds: float) -> bytes:
        """Return the unread lines, or an empty line after a timeout.

        Writing the empty line fails if the connection is broken.
        """
        lines = []
        with suppress(TimeoutError):
            async with timeouts.within(seconds):
                lines.append(await self._lines.get())
        while not self._lines.empty():
            lines.append(self._lines.get_nowait())
        if self._dropped:
            note = {
                "note": f"{self._dropped} lines were dropped, because they arrived faster than they could be displayed"
            }
            lines.append(msgspec.json.encode(note))
            self._dropped = 0
        return b"".join(line + b"\n" for line in lines) or b"\n"

    def _put(self, content: JSONObject) -> None:
        try:
            self._lines.put_nowait(msgspec.json.encode(content))
        except asyncio.QueueFull:
            self._dropped += 1


def _owner_key(pod: JSONObject) -> ObjectKey:
    return ObjectKey(meta.namespace(pod), meta.labels(pod).get(labels.NAME, ""))


async def send(model: LiveModel, request: LogRequest, write: Callable[[bytes], Awaitable[None]]) -> None:
    """Write lines until the set is deleted. Errors from `write` are raised."""
    owners = CurrentOwners(model, request)
    lines = LineQueue(owners.read)
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(_follow(model, request, owners, lines))
        try:
            while not reading.done() or lines.has_lines:
                await write(await lines.read(BETWEEN_SIGNS))
        finally:
            reading.cancel()


async def _follow(model: LiveModel, request: LogRequest, owners: CurrentOwners, lines: LineQueue) -> None:
    options = PodLogOptions(tail=request.tail, timestamps=True)
    streams = Streams(
        MOST_STREAMS,
        lambda: lines.note(f"at most {MOST_STREAMS} ranks can be followed; select fewer ranks"),
        lambda _, error: lines.note(str(error)),
    )

    def covers(pod: JSONObject) -> bool:
        return request.covers(pod, owners.read())

    follower = LogFollower(model.client, covers, options, lines.line, streams)
    try:
        await follower.run(model, SharedPods(model, request))
    except* KubeError as errors:
        lines.note(str(errors.exceptions[0]))
