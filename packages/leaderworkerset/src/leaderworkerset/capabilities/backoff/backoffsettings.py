"""Reads the settings for the back-off and the restart limit (docs/adr/0003-recreation-backoff.md).

Input: the settings of the manager, and the annotations of one LeaderWorkerSet. Each annotation overrides one setting.
Output: the settings for its groups, and the errors of invalid annotations. An invalid annotation that was stored
without the webhook counts as absent.
"""

from collections.abc import Iterator, Mapping
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

LONGEST_RESUMED: Final = 63
"""The maximum length of the reset annotation value, which is copied to the records of groups."""

_DURATIONS: Final = {
    labels.RESTART_FIRST_DELAY: ("first_delay", FIRST_DELAYS),
    labels.RESTART_LONGEST_DELAY: ("longest_delay", LONGEST_DELAYS),
    labels.RESTART_RESET_AFTER: ("reset_after", RESETS),
}
"""The annotations with a duration, and the field and the range of each."""

_ALLOWED: Final[Mapping[str, str]] = {
    labels.RESTART_BACKOFF: f"{ON} or {OFF}",
    **{key: str(allowed) for key, (_, allowed) in _DURATIONS.items()},
    labels.MAX_GROUP_RESTARTS: f"a number from 1 to {MOST_RESTARTS}, or {UNLIMITED}",
    labels.RESUME_GROUP_RESTARTS: f"a string of at most {LONGEST_RESUMED} characters",
}
"""The annotations, and the values that they accept."""

ANNOTATIONS: Final = tuple(_ALLOWED)
"""The annotations that configure group recreation."""


def group_settings(group: LiveGroup) -> RestartSettings:
    """Return the settings of a group. LeaderWorkerSet annotations override manager settings."""
    return apply_annotations(group.facts.get(names.BACKOFF, DEFAULTS), meta.annotations(group.obj))


def apply_annotations(settings: RestartSettings, annotations: Mapping[str, str]) -> RestartSettings:
    """Return the settings of a LeaderWorkerSet with these annotations. Invalid annotations are ignored."""
    for key in _ALLOWED:
        if key in annotations:
            settings = _apply_annotation(key, annotations[key], settings) or settings
    return settings


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of the annotations."""
    new = lws.metadata.annotations
    for key, allowed in _ALLOWED.items():
        text = new.get(key)
        if text is not None and _apply_annotation(key, text, DEFAULTS) is None:
            yield invalid(f"metadata.annotations.{key}", text, f"must be {allowed}")
    first, longest = labels.RESTART_FIRST_DELAY, labels.RESTART_LONGEST_DELAY
    delays = (FIRST_DELAYS.parse(new.get(first, "")), LONGEST_DELAYS.parse(new.get(longest, "")))
    if None not in delays and max(delays, key=_seconds) == delays[0] != delays[1]:
        yield invalid(f"metadata.annotations.{longest}", new[longest], f"must not be less than {first} ({new[first]})")


def warnings(annotations: Mapping[str, str]) -> Iterator[str]:
    """Return a warning about the restart limit annotation, which is replaced by a field."""
    if labels.MAX_GROUP_RESTARTS in annotations:
        field = "spec.leaderWorkerTemplate.maxGroupRestarts"
        yield (
            f"metadata.annotations.{labels.MAX_GROUP_RESTARTS}: use {field} instead, which takes precedence if both "
            "are set"
        )


def _apply_annotation(key: str, text: str, settings: RestartSettings) -> RestartSettings | None:
    """Return the settings after applying one annotation, or None if its value is invalid."""
    if key in _DURATIONS:
        field, allowed = _DURATIONS[key]
        length = allowed.parse(text)
        return None if length is None else replace(settings, **{field: length})
    match key:
        case labels.RESTART_BACKOFF if text in {ON, OFF}:
            return replace(settings, has_backoff=text == ON)
        case labels.MAX_GROUP_RESTARTS if text == UNLIMITED:
            return replace(settings, max_restarts=None)
        case labels.MAX_GROUP_RESTARTS if 1 <= (number := decimals.natural(text) or 0) <= MOST_RESTARTS:
            return replace(settings, max_restarts=number)
        case labels.RESUME_GROUP_RESTARTS if len(text) <= LONGEST_RESUMED:
            return replace(settings, resumed=text)
    return None


def _seconds(length: timedelta | None) -> float:
    return 0.0 if length is None else length.total_seconds()
