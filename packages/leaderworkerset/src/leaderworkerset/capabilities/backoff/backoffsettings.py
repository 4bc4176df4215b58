"""Reads the settings for the back-off and the restart limit (docs/adr/0003-recreation-backoff.md).

Input: the settings of the manager, and the annotations of one LeaderWorkerSet. Each annotation overrides one setting.
Output: the settings for its groups, and the errors of invalid annotations. An invalid annotation that was stored
without the webhook counts as absent.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.duration import Range
from kuberuntime.objects.field import FieldError, invalid
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.capabilities import names
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.policies.recreation import RestartSettings

MOST_RESTARTS: Final = 1000
"""The maximum restart limit in an annotation. The spec has a different limit."""

ON: Final = "on"
OFF: Final = "off"
UNLIMITED: Final = "unlimited"

FIRST_DELAYS: Final = Range(1)
LONGEST_DELAYS: Final = Range(24)
RESETS: Final = Range(168)


DEFAULTS: Final = RestartSettings()
"""The default settings of a manager."""

_Reader = Callable[[RestartSettings, str], "RestartSettings | None"]
"""Returns the settings after applying one annotation, or None if its value is invalid."""


def of_group(group: LiveGroup) -> RestartSettings:
    """Return the settings of a group. LeaderWorkerSet annotations override manager settings."""
    return overridden(group.facts.get(names.BACKOFF, DEFAULTS), meta.annotations(group.obj))


def overridden(settings: RestartSettings, annotations: Mapping[str, str]) -> RestartSettings:
    """Return the settings of a LeaderWorkerSet with these annotations. Invalid annotations are ignored."""
    for key, (reader, _) in _ANNOTATIONS.items():
        if key in annotations:
            settings = reader(settings, annotations[key]) or settings
    return settings


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of the annotations."""
    new = lws.annotations
    for key, (reader, allowed) in _ANNOTATIONS.items():
        text = new.get(key)
        if text is not None and reader(DEFAULTS, text) is None:
            yield invalid(f"metadata.annotations.{key}", text, f"must be {allowed}")
    first, longest = labels.RESTART_FIRST_DELAY, labels.RESTART_LONGEST_DELAY
    delays = (FIRST_DELAYS.read(new.get(first, "")), LONGEST_DELAYS.read(new.get(longest, "")))
    if None not in delays and max(delays, key=_seconds) == delays[0] != delays[1]:
        yield invalid(f"metadata.annotations.{longest}", new[longest], f"must not be less than {first}: {new[first]}")


def warnings(annotations: Mapping[str, str]) -> Iterator[str]:
    """Return a warning about the restart limit annotation, which is replaced by a field."""
    if labels.MAX_GROUP_RESTARTS in annotations:
        field = "spec.leaderWorkerTemplate.maxGroupRestarts"
        yield f"metadata.annotations.{labels.MAX_GROUP_RESTARTS}: use {field}, which takes precedence if both are set"


def _seconds(length: timedelta | None) -> float:
    return 0.0 if length is None else length.total_seconds()


def _read_backoff(settings: RestartSettings, text: str) -> RestartSettings | None:
    return replace(settings, backs_off=text == ON) if text in {ON, OFF} else None


def _read_first_delay(settings: RestartSettings, text: str) -> RestartSettings | None:
    delay = FIRST_DELAYS.read(text)
    return None if delay is None else replace(settings, first_delay=delay)


def _read_longest_delay(settings: RestartSettings, text: str) -> RestartSettings | None:
    delay = LONGEST_DELAYS.read(text)
    return None if delay is None else replace(settings, longest_delay=delay)


def _read_reset(settings: RestartSettings, text: str) -> RestartSettings | None:
    period = RESETS.read(text)
    return None if period is None else replace(settings, reset_after=period)


def _read_max_restarts(settings: RestartSettings, text: str) -> RestartSettings | None:
    if text == UNLIMITED:
        return replace(settings, max_restarts=None)
    number = decimals.natural(text) or 0
    return replace(settings, max_restarts=number) if 1 <= number <= MOST_RESTARTS else None


def _read_resumed(settings: RestartSettings, text: str) -> RestartSettings | None:
    return replace(settings, resumed=text) if len(text) <= LONGEST_RESUMED else None


LONGEST_RESUMED: Final = 63
"""The maximum length of the reset annotation value, which is copied to the records of groups."""

_ANNOTATIONS: Final[Mapping[str, tuple[_Reader, str]]] = {
    labels.RESTART_BACKOFF: (_read_backoff, f"{ON} or {OFF}"),
    labels.RESTART_FIRST_DELAY: (_read_first_delay, str(FIRST_DELAYS)),
    labels.RESTART_LONGEST_DELAY: (_read_longest_delay, str(LONGEST_DELAYS)),
    labels.RESTART_RESET_AFTER: (_read_reset, str(RESETS)),
    labels.MAX_GROUP_RESTARTS: (_read_max_restarts, f"a number from 1 to {MOST_RESTARTS}, or {UNLIMITED}"),
    labels.RESUME_GROUP_RESTARTS: (_read_resumed, f"a text of at most {LONGEST_RESUMED} characters"),
}

ANNOTATIONS: Final = tuple(_ANNOTATIONS)
"""The annotations that configure group recreation."""
