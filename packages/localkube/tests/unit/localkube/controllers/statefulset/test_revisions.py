"""Tests the revision history of a StatefulSet template."""

import pytest
from tests.unit.localkube.controllers.objects import build_statefulset, build_template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.controllers.statefulset import revisions
from localkube.controllers.statefulset.revisions import CurrentRevision, NewRevision, RenumberedRevision

FIRST = revisions.build(build_statefulset(), 1, 0)
SECOND = revisions.build(build_statefulset(template=build_template("v2")), 2, 0)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([], NewRevision(1), id="the first"),
        pytest.param([FIRST], CurrentRevision(FIRST), id="unchanged"),
        pytest.param([SECOND], NewRevision(3), id="changed"),
        pytest.param([FIRST, SECOND], RenumberedRevision(FIRST, 3), id="rolled back"),
    ],
)
def test_update_revision_is_reused_or_created(
    history: list[JSONObject], expected: CurrentRevision | RenumberedRevision | NewRevision
) -> None:
    assert revisions.choose_update(build_statefulset(), history) == expected


def test_revision_name_depends_on_template_and_collisions() -> None:
    again = revisions.build(build_statefulset(), 7, 0)
    collided = revisions.build(build_statefulset(), 1, 1)
    assert meta.name(FIRST) == meta.name(again)
    assert len({meta.name(FIRST), meta.name(SECOND), meta.name(collided)}) == 3
    assert meta.name(FIRST) == f"web-{meta.labels(FIRST)[revisions.HASH_LABEL]}"


def test_template_survives_the_round_trip() -> None:
    assert revisions.read_template(FIRST) == build_template("v1")


def test_current_revision_defaults_to_the_update_revision() -> None:
    statefulset = build_statefulset({"status": {"currentRevision": meta.name(FIRST)}})
    assert revisions.choose_current(statefulset, [FIRST, SECOND], SECOND) is FIRST
    assert revisions.choose_current(build_statefulset(), [FIRST, SECOND], SECOND) is SECOND


def test_revisions_are_ordered_by_number_age_and_name() -> None:
    young = FIRST | {"metadata": {"name": "a", "creationTimestamp": "2026-01-02T00:00:00Z"}}
    old = FIRST | {"metadata": {"name": "b", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert revisions.sort_revisions([SECOND, young, old]) == [old, young, SECOND]


@pytest.mark.parametrize(("limit", "names"), [(None, []), (2, ["r0"]), (0, ["r0", "r2", "r4"])])
def test_oldest_unused_revisions_are_deleted(limit: int | None, names: list[str]) -> None:
    history: list[JSONObject] = [{"metadata": {"name": f"r{number}"}, "revision": number} for number in range(5)]
    statefulset = build_statefulset(revisionHistoryLimit=limit)
    gone = revisions.obsolete_revisions(statefulset, history, {"r1", "r3"})
    assert [meta.name(revision) for revision in gone] == names
