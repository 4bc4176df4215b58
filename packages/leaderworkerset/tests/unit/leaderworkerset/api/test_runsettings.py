"""Tests that settings for progress and completion are parsed, and rejected if they are invalid."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset, runsettings
from leaderworkerset.api.runsettings import OFF, RunSettings

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("annotations", "settings"),
    [
        ({}, OFF),
        ({"other": "true"}, OFF),
        ({labels.FOLLOW_PROGRESS: "true"}, RunSettings(tracks_progress=True)),
        ({labels.FOLLOW_PROGRESS: "yes"}, OFF),
        ({labels.PROGRESS_TIMEOUT: "1m"}, RunSettings(tracks_progress=True, timeout=MINUTE)),
        ({labels.PROGRESS_TIMEOUT: "1"}, OFF),
        ({labels.PROGRESS_TIMEOUT: "0s"}, OFF),
        ({labels.PROGRESS_TIMEOUT: "9" * 400 + "h"}, OFF),
        ({labels.ON_HANG: "recreate"}, OFF),
        (
            {labels.PROGRESS_TIMEOUT: "1m", labels.ON_HANG: "recreate"},
            RunSettings(tracks_progress=True, timeout=MINUTE, recreates=True),
        ),
        ({labels.COMPLETION_DEADLINE: "1m", labels.TTL_AFTER_FINISHED: "1m"}, OFF),
        (
            {labels.RUN_TO_COMPLETION: "true", labels.COMPLETION_DEADLINE: "1m", labels.TTL_AFTER_FINISHED: "60s"},
            RunSettings(runs_to_completion=True, deadline=MINUTE, ttl=MINUTE),
        ),
    ],
)
def test_run_settings_are_read(annotations: Mapping[str, str], settings: RunSettings) -> None:
    assert runsettings.read(annotations) == settings


def errors(annotations: Mapping[str, str], **spec: object) -> list[str]:
    obj: JSONObject = builders.leaderworkerset_object(metadata={"annotations": dict(annotations)}, **spec)  # type: ignore[arg-type]
    return [one.path.rpartition("/")[2] for one in runsettings.errors(leaderworkerset.decode(obj))]


COMPLETES = {labels.RUN_TO_COMPLETION: "true"}
WATCHED = {labels.PROGRESS_TIMEOUT: "5m"}


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {labels.FOLLOW_PROGRESS: "true"},
        WATCHED | {labels.ON_HANG: "recreate"},
        COMPLETES | {labels.COMPLETION_DEADLINE: "24h", labels.TTL_AFTER_FINISHED: "1s"},
    ],
)
def test_valid_annotations_have_no_error(annotations: Mapping[str, str]) -> None:
    assert errors(annotations) == []


@pytest.mark.parametrize(
    ("annotations", "wrong"),
    [
        ({labels.FOLLOW_PROGRESS: "false"}, "follow-progress"),
        ({labels.PROGRESS_TIMEOUT: "never"}, "progress-timeout"),
        ({labels.PROGRESS_TIMEOUT: "500ms"}, "progress-timeout"),
        ({labels.ON_HANG: "recreate"}, "on-hang"),
        (WATCHED | {labels.ON_HANG: "delete"}, "on-hang"),
        ({labels.RUN_TO_COMPLETION: "1"}, "run-to-completion"),
        ({labels.COMPLETION_DEADLINE: "1h"}, "completion-deadline"),
        ({labels.TTL_AFTER_FINISHED: "1h"}, "ttl-after-finished"),
        (COMPLETES | {labels.TTL_AFTER_FINISHED: "9000h"}, "ttl-after-finished"),
    ],
)
def test_invalid_annotations_are_rejected(annotations: Mapping[str, str], wrong: str) -> None:
    assert errors(annotations) == [wrong]


def test_hang_and_completion_settings_require_their_policies() -> None:
    assert errors(WATCHED | {labels.ON_HANG: "recreate"}, template={"restartPolicy": "None"}) == ["on-hang"]
    assert errors(COMPLETES, spec={"groupIdentity": "Hash"}) == ["run-to-completion"]
