"""Tests the record of updated containers, and which restarts are not failures."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.capabilities.inplace import inplacegroups, inplacepods
from leaderworkerset.capabilities.inplace.inplacepods import PreviousContainer
from leaderworkerset.core.policies import failures

UNTIL = "2026-01-02T03:04:05Z"


def running_leader(
    before: str = "", *, restarts: int = 0, container: str = "runc://a", image: str = "app:1"
) -> JSONObject:
    """Return a leader whose only container is running. `before` is its record."""
    found = builders.leader_pod(
        builders.leaderworkerset_object(),
        annotations={labels.IN_PLACE_BEFORE: before} if before else {},
        restarts=restarts,
    )
    found["spec"]["containers"][0]["image"] = image
    found["status"]["containerStatuses"][0] |= {"state": {"running": {}}} | (
        {"containerID": container} if container else {}
    )
    return found


def waiting(before: str, **facts: Any) -> JSONObject:
    """Return a leader whose container has terminated and waits for its image.

    A kubelet reports the terminated container's ID.
    """
    found = running_leader(before, **facts)
    found["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ImagePullBackOff"}}
    return found


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (running_leader(), "main=1=runc://a=app:1"),
        (running_leader(restarts=2), "main=3=runc://a=app:1"),
        (running_leader(container=""), "main=0==app:1"),
        (running_leader("main=1=runc://a=app:0", restarts=1, container="runc://b"), "main=2=runc://b=app:1"),
        (running_leader("main=1=runc://a=app:0"), f"main=1=runc://a=app:0={UNTIL}"),
        (running_leader("main=1=runc://a=app:2"), f"main=0==={UNTIL}"),
        (waiting("main=1=runc://a=app:2"), "main=1=runc://a=app:2"),
        (waiting("main=1=runc://a=app:0"), "main=1=runc://a=app:0"),
        (running_leader("proxy=4==,main=1=runc://a=app:0"), f"main=1=runc://a=app:0={UNTIL},proxy=4=="),
    ],
    ids=[
        "first",
        "was restarted",
        "never ran",
        "again",
        "not ended yet",
        "taken back",
        "taken back after it ended",
        "another one after it ended",
        "of others",
    ],
)
def test_record_has_the_restarts_that_the_change_causes(found: JSONObject, expected: str) -> None:
    """A terminating container is not counted twice. A container whose image is reverted continues to run."""
    assert inplacepods.record(found, {"main": "app:2"}, UNTIL) == expected


def test_unchanged_containers_are_not_recorded() -> None:
    assert inplacepods.record(running_leader(), {}, UNTIL) == ""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (running_leader(), True),
        (running_leader("main=1=runc://a=app:1"), False),
        (running_leader("main=1=runc://a=app:1", container="runc://b"), True),
        (running_leader("main=0=="), True),
        (running_leader("proxy=1=runc://a=app:1"), True),
    ],
    ids=["never changed", "the old one", "a new one", "goes on", "another container"],
)
def test_pod_is_settled_when_the_new_containers_run(found: JSONObject, expected: bool) -> None:
    assert inplacepods.is_update_complete(found) is expected


@pytest.mark.parametrize(("restarts", "expected"), [(0, False), (1, False), (2, True)])
def test_restarts_up_to_the_recorded_count_are_no_failures(restarts: int, expected: bool) -> None:
    """Unlike all other restarts, restarts that an update requests are not failures (R-POD-4)."""
    assert (
        failures.has_failed(running_leader("main=1=runc://a=app:1", restarts=restarts), excuses=[inplacegroups.excuses])
        is expected
    )


@pytest.mark.parametrize(
    ("restarts", "started", "expected"),
    [(0, "2026-01-02T03:04:00Z", False), (2, UNTIL, False), (3, UNTIL, True), (1, "2026-01-02T03:04:06Z", True)],
    ids=["it continues", "ended twice", "once more", "much later"],
)
def test_restarts_are_excused_when_an_image_is_reverted(restarts: int, started: str, expected: bool) -> None:
    """The kubelet has stopped the container, and restarts it with either the reverted or the original image."""
    found = running_leader(f"main=0==={UNTIL}", restarts=restarts)
    found["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": started}}
    assert failures.has_failed(found, excuses=[inplacegroups.excuses]) is expected


def test_unreadable_record_counts_as_absent() -> None:
    assert inplacepods.read(running_leader("main,a=x=y=z,b=99999999999999999999==,c=3")) == {"c": PreviousContainer(3)}
