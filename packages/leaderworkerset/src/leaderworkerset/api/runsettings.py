"""Reads the annotation settings of a LeaderWorkerSet for progress tracking and completion (docs/adr/0026).

Input: annotations. Output: the settings, and the errors of invalid annotations. An invalid annotation that was stored
without the webhook counts as absent. Without annotations, progress is not tracked, and groups do not complete.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects.duration import Range
from kuberuntime.objects.field import FieldError, invalid
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

TRUE: Final = "true"
RECREATE: Final = "recreate"

DURATIONS: Final = Range(365 * 24)


class RunSettings(Struct, frozen=True, kw_only=True):
    """The settings for progress tracking and completion.

    If `timeout` is set, a group that makes no progress for this duration hangs. It is recreated if `recreates` is set.
    If `runs_to_completion` is set, a group is complete when its leader exits with code 0. `deadline` counts from the first pods
    of a template, and `ttl` from the time when all groups are finished.
    """

    tracks_progress: bool = False
    timeout: timedelta | None = None
    recreates: bool = False
    runs_to_completion: bool = False
    deadline: timedelta | None = None
    ttl: timedelta | None = None


OFF: Final = RunSettings()

ANNOTATIONS: Final = (
    labels.FOLLOW_PROGRESS,
    labels.PROGRESS_TIMEOUT,
    labels.ON_HANG,
    labels.RUN_TO_COMPLETION,
    labels.COMPLETION_DEADLINE,
    labels.TTL_AFTER_FINISHED,
)

_WORDS: Final = {labels.FOLLOW_PROGRESS: TRUE, labels.ON_HANG: RECREATE, labels.RUN_TO_COMPLETION: TRUE}
"""The keyword that each annotation accepts in addition to a duration."""


def read(annotations: Mapping[str, str]) -> RunSettings:
    """Return the settings in the annotations."""
    if annotations.keys().isdisjoint(ANNOTATIONS):
        return OFF
    timeout = DURATIONS.parse(annotations.get(labels.PROGRESS_TIMEOUT, ""))
    completes = annotations.get(labels.RUN_TO_COMPLETION) == TRUE
    return RunSettings(
        tracks_progress=timeout is not None or annotations.get(labels.FOLLOW_PROGRESS) == TRUE,
        timeout=timeout,
        recreates=timeout is not None and annotations.get(labels.ON_HANG) == RECREATE,
        runs_to_completion=completes,
        deadline=DURATIONS.parse(annotations.get(labels.COMPLETION_DEADLINE, "")) if completes else None,
        ttl=DURATIONS.parse(annotations.get(labels.TTL_AFTER_FINISHED, "")) if completes else None,
    )


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of the annotations."""
    annotations = lws.metadata.annotations
    for name in ANNOTATIONS:
        text = annotations.get(name)
        if text is None:
            continue
        where = f"metadata.annotations.{name}"
        if name in _WORDS and text != _WORDS[name]:
            yield invalid(where, text, f"must be {_WORDS[name]}, or must not be set")
        elif name not in _WORDS and DURATIONS.parse(text) is None:
            yield invalid(where, text, f"must be {DURATIONS}")
        elif (missing := _missing_requirement(name, lws)) is not None:
            yield invalid(where, text, missing)


def _missing_requirement(name: str, lws: LeaderWorkerSet) -> str | None:
    """Return the unmet requirement of an annotation."""
    recreates = lws.spec.leader_worker_template.restart_policy.recreates
    match name:
        case labels.ON_HANG if labels.PROGRESS_TIMEOUT not in lws.metadata.annotations:
            return f"requires the annotation {labels.PROGRESS_TIMEOUT}"
        case labels.ON_HANG if not recreates:
            return "requires a restartPolicy that recreates groups"
        case labels.RUN_TO_COMPLETION if lws.spec.group_identity.is_hash:
            return "requires groupIdentity Ordinal"
        case labels.COMPLETION_DEADLINE | labels.TTL_AFTER_FINISHED if (
            labels.RUN_TO_COMPLETION not in lws.metadata.annotations
        ):
            return f"requires the annotation {labels.RUN_TO_COMPLETION}"
    return None
