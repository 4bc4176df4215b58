"""Tests roles, parts, rollout progress, and missing parts of DisaggregatedSets in views."""

from typing import Any

import pytest
from tests import builders
from tests.disaggregated import disaggregatedset_object, role

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.disaggregatedset import REVISION, ROLE, SET_NAME, SLICE
from lwsctl.model.disaggregatedset import RoleCount, SetView, leaderworkersets, set_view
from lwsctl.model.leaderworkerset import View, view
from lwsctl.views import unmetconditions
from lwsctl.views.document import document

ROLES = (role("prefill", 2), role("decode", 1))
AVAILABLE = {"type": "Available", "status": "True", "observedGeneration": 1}


def disaggregated(*, is_available: bool = True, updated: int = 3, roles: Any = ROLES, **spec: Any) -> JSONObject:
    """Return a DisaggregatedSet with this status."""
    status = {
        "observedGeneration": 1,
        "roleStatuses": [{"name": "prefill", "updatedReplicas": updated}],
        "conditions": [AVAILABLE | {"status": str(is_available)}],
    }
    return disaggregatedset_object(roles, status=status, **spec)


def part(role_name: str, desired: int, *, ready: int | None = None, revision: str = "new", slice_: str = "0") -> View:
    """Return the view of a LeaderWorkerSet in the DisaggregatedSet. Its pods are as ready as its groups."""
    name = f"split-{slice_}-{revision}-{role_name}"
    obj = builders.leaderworkerset_object(name=name, replicas=desired, size=1)
    owner = {"kind": "DisaggregatedSet", "name": "split", "uid": "uid-of-split", "controller": True}
    obj["metadata"] |= {
        "labels": {SET_NAME: "split", ROLE: role_name, REVISION: revision} | ({SLICE: slice_} if slice_ else {}),
        "ownerReferences": [owner],
    }
    count = desired if ready is None else ready
    obj["status"] = {"observedGeneration": 1, "readyReplicas": count, "conditions": [AVAILABLE]}
    pods = [builders.leader_pod(obj, index) for index in range(count)]
    return view(obj, pods)


def seen(*parts: View, **fields: Any) -> SetView:
    return set_view(disaggregated(**fields), parts)


def test_roles_are_counted_over_slices_and_revisions() -> None:
    shown = seen(
        part("prefill", 2, ready=1), part("prefill", 2, slice_="1"), part("decode", 1, revision="old"), slices=2
    )
    assert shown.roles == (RoleCount("prefill", 3, 4, 3), RoleCount("decode", 1, 2))
    assert (shown.ready, shown.desired) == (4, 6)
    assert [one.name for one in shown.parts] == [
        "split-0-old-decode",
        "split-0-new-prefill",
        "split-1-new-prefill",
    ]
    assert leaderworkersets([shown, part("x", 1)])[-1].name == "split-0-new-x"


def test_parts_of_a_different_owner_are_omitted() -> None:
    foreign = part("prefill", 2)
    foreign.object["metadata"]["ownerReferences"][0]["uid"] = "another"
    assert seen(foreign).parts == ()


def test_scaled_role_uses_the_size_of_its_leaderworkersets() -> None:
    shown = seen(part("prefill", 5, ready=4), roles=[role("prefill", external=True), role("decode", 1)])
    assert str(shown.roles[0]) == "prefill 4/5"


def test_part_without_a_slice_belongs_to_slice_0() -> None:
    assert seen(part("prefill", 2, slice_="")).parts[0].slice == "0"


@pytest.mark.parametrize(
    ("parts", "is_available", "is_ready", "rollout"),
    [
        ([part("prefill", 2), part("decode", 1)], True, True, "complete"),
        ([part("prefill", 2), part("decode", 1)], False, False, "progressing"),
        (
            [part("prefill", 2), part("decode", 1), part("decode", 0, revision="old")],
            True,
            False,
            "updated 2 of 3 groups",
        ),
        ([part("prefill", 2, ready=1), part("decode", 1)], True, False, "complete"),
        ([], False, False, "progressing"),
    ],
    ids=["ready", "progressing", "an old LeaderWorkerSet is left", "a pod is not ready", "no part yet"],
)
def test_set_is_ready_when_all_parts_are_and_the_rollout_ended(
    parts: list[View], is_available: bool, is_ready: bool, rollout: str
) -> None:
    shown = seen(*parts, is_available=is_available, updated=2)
    assert shown.is_ready is is_ready
    assert shown.rollout == rollout
    assert (unmetconditions.missing_for_ready(shown) is None) is is_ready


def test_status_of_an_older_spec_is_ignored() -> None:
    obj = disaggregated()
    obj["metadata"]["generation"] = 2
    assert not set_view(obj, [part("prefill", 2), part("decode", 1)]).is_ready


def test_role_without_groups_is_not_awaited() -> None:
    idle = part("decode", 0)
    idle.object["status"] = {}
    assert seen(part("prefill", 2), idle, roles=[role("prefill", 2), role("decode", 0)]).is_ready


def test_missing_parts_are_listed_with_the_first_reason() -> None:
    shown = seen(part("prefill", 2, ready=1), part("decode", 1), is_available=False)
    assert unmetconditions.missing_for_ready(shown) == (
        "prefill 1 of 2 groups ready, decode 1 of 1 group ready; rollout progressing;"
        " split-0-new-prefill-1 is not created yet"
    )
    assert (
        unmetconditions.missing_for_replicas(shown, 3)
        == "2 groups ready, not 3; split-0-new-prefill-1 is not created yet"
    )
    assert unmetconditions.missing_for_replicas(shown, 2) is None
    assert unmetconditions.missing_for_condition(shown, "Available", "True") == (
        "condition Available is False; split-0-new-prefill-1 is not created yet"
    )
    assert unmetconditions.missing_for_deletion(shown) == "it still exists"


def test_document_has_disaggregated_sets_when_there_are_any() -> None:
    one = part("prefill", 2)
    assert "disaggregatedSets" not in document([one])
    (shown,) = document([one], [seen(one)])["disaggregatedSets"]
    assert shown["rollout"] == "complete"
    assert shown["roles"] == [
        {"role": "prefill", "ready": 2, "desired": 2},
        {"role": "decode", "ready": 0, "desired": 1},
    ]
    assert shown["leaderWorkerSets"] == [
        {
            "name": "split-0-new-prefill",
            "role": "prefill",
            "slice": "0",
            "revision": "new",
            "ready": 2,
            "desired": 2,
        }
    ]
