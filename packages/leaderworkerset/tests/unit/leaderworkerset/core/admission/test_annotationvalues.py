"""Tests that each annotation with the project's prefix is parsed, rejected, or reported with a warning."""

from typing import Final

import pytest
from tests import builders
from tests.disaggregated import disaggregatedset_object, role

from leaderworkerset.api import labels
from leaderworkerset.api.usersettings import SETTINGS
from leaderworkerset.capabilities import deciding
from leaderworkerset.capabilities.enabled import ENABLED
from leaderworkerset.core.admission import annotationvalues, disaggregatedset

OURS: Final = sorted(
    {value for value in vars(labels).values() if isinstance(value, str) and value.startswith(labels.PREFIX)}
    - {labels.PREFIX}
)
"""All names with the project's prefix. An annotation with the name of a label or a gate has no effect."""

UNREADABLE: Final = "what is this? " * 40
"""A string that is too long for a name, and is neither a number nor a duration."""

READABLE: Final = {
    labels.GROUP_RESTART_COUNTS: '{"675d4d9bc9/0":2}',
    labels.PAUSED_PARTITION: "2",
    labels.EXCLUSIVE_TOPOLOGY: "cloud.google.com/gke-nodepool",
    labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "rack",
    labels.RECREATE_GROUP_AFTER_START: "true",
}


def told(name: str, text: str) -> list[str]:
    """Return the admission errors and warnings for an annotation."""
    lws = builders.annotated({name: text})
    return [
        text for text in (*map(str, deciding.validate_leaderworkerset(lws)), *deciding.warnings(lws)) if name in text
    ]


def test_only_one_annotation_accepts_any_text_silently() -> None:
    """The table of annotations is complete. The expected names are from `labels`, and not from this test."""
    assert [name for name in OURS if not told(name, UNREADABLE)] == [labels.RECREATE_GROUP_AFTER_START]


def test_warnings_are_bounded() -> None:
    objects = [builders.annotated({name: "x" * 100_000}) for name in annotationvalues.CHECKS]
    assert all(len(text) < 400 for lws in objects for text in annotationvalues.warnings(lws))


def test_every_setting_has_a_reader() -> None:
    read = {name for capability in ENABLED for name in capability.settings}
    assert {row.annotation for row in SETTINGS} - read == {*annotationvalues.CHECKS, labels.GANG_SCHEDULER} - STATE


STATE: Final = {labels.GROUP_RESTART_COUNTS, labels.PAUSED_PARTITION}
"""LeaderWorkerSet annotations that the manager and commands write."""


@pytest.mark.parametrize("name", sorted(annotationvalues.CHECKS))
def test_readable_annotation_is_accepted_silently(name: str) -> None:
    assert list(annotationvalues.warnings(builders.annotated({name: READABLE[name]}))) == []


@pytest.mark.parametrize(
    "name", [labels.RECOVER, labels.GROUP_RESTART_BUDGET_EXHAUSTED, labels.PREFIX + "restart-backof"]
)
def test_annotation_of_a_different_object_has_no_effect(name: str) -> None:
    assert told(name, "true") == [f"metadata.annotations.{name}: has no effect on a LeaderWorkerSet"]


def test_annotations_of_others_are_not_read() -> None:
    assert list(annotationvalues.warnings(builders.annotated({"example.com/note": UNREADABLE}))) == []


def test_annotations_of_roles_are_warned_about() -> None:
    obj = disaggregatedset_object(
        [role("a", 1) | {"metadata": {"annotations": {labels.RECOVER: "true"}}}, role("b", 1)]
    )
    (warning,) = [text for text in disaggregatedset.warnings(obj) if labels.RECOVER in text]
    assert warning == f"spec.roles[0].metadata.annotations.{labels.RECOVER}: has no effect on a LeaderWorkerSet"
