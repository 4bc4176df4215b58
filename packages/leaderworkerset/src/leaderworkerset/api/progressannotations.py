"""Parses and formats progress reports of training processes and hang reports. The functions are pure.

A program writes lines `::lws progress step=120 total=5000 loss=2.1`. The latest report is stored in an annotation of
the leader pod, in the same format, with the time of the line (`at`) and the steps per second (`rate`). A hang is stored
as JSON in a second annotation. Tenants can write both annotations, so every value has a maximum length, and an invalid
value counts as absent.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from kuberuntime.objects import decimals, timestamps

MARK: Final = "::lws progress "
"""The prefix of a progress report."""

LONGEST: Final = 2000
"""The maximum number of characters after the prefix. Longer lines are ignored."""

MOST_METRICS: Final = 16

MOST_RANKS: Final = 8
"""The maximum number of ranks in a hang report. The longest silent rank is first."""

LONGEST_HANG: Final = 8000
LONGEST_WORDS: Final = 200
LONGEST_NAME: Final = 253
"""The maximum number of characters of a stored hang report, of one rank's reason, and of a pod name."""

_PAIR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]{0,62})=([^\s=]{1,40})", re.ASCII)
_METRIC: Final = re.compile(r"[+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-9]{1,3})?|inf|nan)%?", re.ASCII)
_RATE: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)

_RESERVED: Final = frozenset({"step", "total", "at", "rate"})


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a training process, with its step, the total steps if known, and the reported metrics.

    `at` is the time of the report, or None if the line has no time. `rate` is the number of steps per second before it,
    or 0 if it is unknown.
    """

    step: int
    total: int | None = None
    metrics: tuple[tuple[str, str], ...] = ()
    at: datetime | None = None
    rate: float = 0.0

    @property
    def fraction(self) -> float | None:
        """Return the completed fraction from 0 to 1, or None if the total is unknown."""
        return None if not self.total else min(self.step / self.total, 1.0)

    def remaining_time(self, now: datetime) -> timedelta | None:
        """Return the remaining time at the current rate, or None if it is unknown."""
        if self.total is None or self.at is None or self.rate <= 0:
            return None
        seconds = (self.total - self.step) / self.rate - (now - self.at).total_seconds()
        return timedelta(seconds=min(max(seconds, 0.0), 1e9))


def parse_log_line(line: str) -> Progress | None:
    """Parse a log line. Return None if the line is not a progress report.

    >>> parse_log_line("::lws progress step=120 total=5000 loss=2.1")
    Progress(step=120, total=5000, metrics=(('loss', '2.1'),), at=None, rate=0.0)
    >>> parse_log_line("step=120") is None
    True
    """
    if not line.startswith(MARK) or len(line) > LONGEST + len(MARK):
        return None
    return _parse_progress(_parse_pairs(line[len(MARK) :]))


def parse_annotation(text: str) -> Progress | None:
    """Parse the annotation of a leader pod. Return None if the annotation is missing or invalid."""
    pairs = _parse_pairs(text) if len(text) <= LONGEST else {}
    progress, at = _parse_progress(pairs), timestamps.read(pairs.get("at", ""))
    if progress is None or at is None:
        return None
    rate = float(pairs["rate"]) if _RATE.fullmatch(pairs.get("rate", "")) else 0.0
    return Progress(step=progress.step, total=progress.total, metrics=progress.metrics, at=at, rate=rate)


def render(progress: Progress) -> str:
    """Return an annotation value that `parse_annotation` can parse."""
    own = {"step": str(progress.step)} | ({} if progress.total is None else {"total": str(progress.total)})
    time = {} if progress.at is None else {"at": progress.at.isoformat()}
    rate = {"rate": f"{progress.rate:.6f}"} if progress.rate > 0 else {}
    return " ".join(f"{name}={value}" for name, value in (*own.items(), *progress.metrics, *(time | rate).items()))


def _parse_pairs(text: str) -> Mapping[str, str]:
    return {match[1]: match[2] for word in text.split() if (match := _PAIR.fullmatch(word))}


def _parse_progress(pairs: Mapping[str, str]) -> Progress | None:
    step = decimals.natural(pairs.get("step", ""))
    if step is None:
        return None
    metrics = [(name, value) for name, value in pairs.items() if name not in _RESERVED and _METRIC.fullmatch(value)]
    total = decimals.natural(pairs.get("total", "")) or None
    return Progress(step=step, total=total, metrics=tuple(metrics[:MOST_METRICS]))


class SilentRank(msgspec.Struct, frozen=True, kw_only=True):
    """A rank of a hanging group, the time of its last log line, and the reason why it is waiting, if known."""

    pod: str
    uid: str
    rank: int
    since: datetime
    waits: str = ""


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """A group without progress. The first rank in `ranks` has been silent for the longest time."""

    since: datetime
    ranks: tuple[SilentRank, ...]

    @property
    def longest_silent_rank(self) -> SilentRank:
        """Return the rank that has been silent for the longest time."""
        return self.ranks[0]


class _StoredRank(msgspec.Struct, frozen=True):
    pod: str
    uid: str
    rank: int
    since: str
    waits: str = ""


class _StoredHang(msgspec.Struct, frozen=True):
    since: str
    ranks: tuple[_StoredRank, ...]


def render_hang(hang: Hang) -> str:
    """Return an annotation value that `parse_hang` can parse.

    If there are too many ranks, it contains only the first.
    """
    ranks = [
        _StoredRank(rank.pod, rank.uid, rank.rank, rank.since.isoformat(), rank.waits[:LONGEST_WORDS])
        for rank in hang.ranks[:MOST_RANKS]
    ]
    return msgspec.json.encode(_StoredHang(hang.since.isoformat(), tuple(ranks))).decode()


def parse_hang(text: str) -> Hang | None:
    """Parse the annotation of a leader pod. Return None if the annotation is missing or invalid."""
    if not text or len(text) > LONGEST_HANG:
        return None
    try:
        stored = msgspec.json.decode(text, type=_StoredHang)
    except (msgspec.DecodeError, RecursionError):
        return None
    since, ranks = timestamps.read(stored.since), [_parse_silent_rank(rank) for rank in stored.ranks[:MOST_RANKS]]
    usable = tuple(rank for rank in ranks if rank is not None)
    return Hang(since=since, ranks=usable) if since is not None and usable else None


def _parse_silent_rank(stored: _StoredRank) -> SilentRank | None:
    since, words = timestamps.read(stored.since), " ".join(stored.waits[:LONGEST_WORDS].split())
    if since is None or stored.rank < 0 or not 0 < len(stored.pod) <= LONGEST_NAME:
        return None
    return SilentRank(pod=stored.pod, uid=stored.uid, rank=stored.rank, since=since, waits=words)
