"""Settings of recreations: delays after repeated failures, their maximum number.

In: the settings of the manager, and the annotations of one LeaderWorkerSet, each of which overrides one of them. Out:
the settings for its groups, and the errors of invalid annotations. An invalid annotation that was stored without the
webhook counts as absent. Why these numbers: docs/adr/0003-recreation-backoff.md.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, duration
from kuberuntime.objects.field import FieldError, invalid
from leaderworkerset.api import labels

DOUBLINGS: Final = 32
"""The maximum number of doublings of a delay: more than any longest delay needs."""

MOST_RESTARTS: Final = 1000
"""The maximum number of recreations of a group that can be configured here; the spec has its own limit."""

ON: Final = "on"
OFF: Final = "off"
UNLIMITED: Final = "unlimited"


class Range(Struct, frozen=True):
    """A range of durations: from one second to a number of hours."""

    hours: int

    def __str__(self) -> str:
        return f"a duration from 1s to {self.hours}h"

    def holds(self, seconds: float) -> bool:
        """Return whether a duration of so many seconds is allowed."""
        return 1 <= seconds <= self.hours * 3600

    def read(self, text: str) -> timedelta | None:
        """Read a duration, None for one that is not allowed."""
        try:
            seconds = duration.parse(text)
        except ValueError:
            return None
        return timedelta(seconds=seconds) if self.holds(seconds) else None


FIRST_DELAYS: Final = Range(1)
LONGEST_DELAYS: Final = Range(24)
RESETS: Final = Range(168)


class RestartSettings(Struct, frozen=True, kw_only=True):
    """How groups that fail are recreated.

    Without `backs_off` every failure recreates at once, as the Go controller does. Without `max_restarts` there is no limit
    to the recreations of a group. `resumed` is any text: when it changes, the counts of groups are reset.
    """

    backs_off: bool = True
    first_delay: timedelta = timedelta(seconds=10)
    longest_delay: timedelta = timedelta(minutes=5)
    reset_after: timedelta = timedelta(minutes=10)
    max_restarts: int | None = None
    resumed: str = ""

    @property
    def remembers(self) -> bool:
        """Return whether recreations are recorded: only delays and limits need their number."""
        return self.backs_off or self.max_restarts is not None

    def delay(self, count: int) -> timedelta:
        """Return the delay of recreation number `count` in a row.

        >>> [int(RestartSettings().delay(count).total_seconds()) for count in (1, 2, 3, 6, 7, 1000)]
        [0, 10, 20, 160, 300, 300]
        """
        if count <= 1 or not self.backs_off:
            return timedelta()
        doublings: int = 2 ** min(count - 2, DOUBLINGS)
        longest = max(self.first_delay, self.longest_delay)
        return longest if doublings >= longest / self.first_delay else self.first_delay * doublings

    def is_spent(self, used: int) -> bool:
        """Return whether a group that has used so many restarts has no further one."""
        return self.max_restarts is not None and used >= self.max_restarts

    def of(self, annotations: Mapping[str, str]) -> "RestartSettings":
        """Return the settings for a LeaderWorkerSet with these annotations."""
        found = {key: annotations[key] for key in _READERS if key in annotations}
        if not found:
            return self
        settings = self
        for key, text in found.items():
            settings = _READERS[key](settings, text) or settings
        return settings


DEFAULTS: Final = RestartSettings()

_Reader = Callable[[RestartSettings, str], "RestartSettings | None"]
"""Returns the settings with one annotation, None if its text is invalid."""


def errors(new: Mapping[str, str]) -> Iterator[FieldError]:
    """Return the errors of the annotations."""
    for key, (reader, allowed) in _ANNOTATIONS.items():
        text = new.get(key)
        if text is not None and reader(DEFAULTS, text) is None:
            yield invalid(f"metadata.annotations.{key}", text, f"must be {allowed}")
    first, longest = labels.RESTART_FIRST_DELAY, labels.RESTART_LONGEST_DELAY
    delays = (FIRST_DELAYS.read(new.get(first, "")), LONGEST_DELAYS.read(new.get(longest, "")))
    if None not in delays and max(delays, key=_seconds) == delays[0] != delays[1]:
        yield invalid(f"metadata.annotations.{longest}", new[longest], f"must not be less than {first}: {new[first]}")


def warnings(annotations: Mapping[str, str]) -> Iterator[str]:
    """Return a warning about the limit of restarts as an annotation, which has been a field since."""
    if labels.MAX_GROUP_RESTARTS in annotations:
        field = "spec.leaderWorkerTemplate.maxGroupRestarts"
        yield f"metadata.annotations.{labels.MAX_GROUP_RESTARTS}: use {field}, which counts where both are set"


def _seconds(length: timedelta | None) -> float:
    return 0.0 if length is None else length.total_seconds()


def _read_backoff(settings: RestartSettings, text: str) -> RestartSettings | None:
    return replace(settings, backs_off=text == ON) if text in {ON, OFF} else None


def _read_first_delay(settings: RestartSettings, text: str) -> RestartSettings | None:
    found = FIRST_DELAYS.read(text)
    return None if found is None else replace(settings, first_delay=found)


def _read_longest_delay(settings: RestartSettings, text: str) -> RestartSettings | None:
    found = LONGEST_DELAYS.read(text)
    return None if found is None else replace(settings, longest_delay=found)


def _read_reset(settings: RestartSettings, text: str) -> RestartSettings | None:
    found = RESETS.read(text)
    return None if found is None else replace(settings, reset_after=found)


def _read_max_restarts(settings: RestartSettings, text: str) -> RestartSettings | None:
    if text == UNLIMITED:
        return replace(settings, max_restarts=None)
    number = decimals.natural(text) or 0
    return replace(settings, max_restarts=number) if 1 <= number <= MOST_RESTARTS else None


def _read_resumed(settings: RestartSettings, text: str) -> RestartSettings | None:
    return replace(settings, resumed=text) if len(text) <= LONGEST_RESUMED else None


LONGEST_RESUMED: Final = 63
"""The maximum length of the text that resets the counts of groups: it is copied to their records."""

_ANNOTATIONS: Final[Mapping[str, tuple[_Reader, str]]] = {
    labels.RESTART_BACKOFF: (_read_backoff, f"{ON} or {OFF}"),
    labels.RESTART_FIRST_DELAY: (_read_first_delay, str(FIRST_DELAYS)),
    labels.RESTART_LONGEST_DELAY: (_read_longest_delay, str(LONGEST_DELAYS)),
    labels.RESTART_RESET_AFTER: (_read_reset, str(RESETS)),
    labels.MAX_GROUP_RESTARTS: (_read_max_restarts, f"a number from 1 to {MOST_RESTARTS}, or {UNLIMITED}"),
    labels.RESUME_GROUP_RESTARTS: (_read_resumed, f"a text of at most {LONGEST_RESUMED} characters"),
}

_READERS: Final[Mapping[str, _Reader]] = {key: reader for key, (reader, _) in _ANNOTATIONS.items()}

ANNOTATIONS: Final = tuple(_ANNOTATIONS)
"""The annotations that configure how groups are recreated."""
