"""Tests the reason why a container has no log, for example because its pod is unscheduled.

Pods share a reason.
"""

from functools import partial
from typing import Any

import pytest
from testkit import objects

from lwsctl.views.podcontainers import (
    DEFAULT,
    containers,
    default_container,
    default_container_note,
    group_by_reason,
    missing_log_reason,
    waiting_for_logs,
)

NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."
NO_SECRET = {"reason": "CreateContainerConfigError", "message": 'secret "a" not found'}
SPEC = {"containers": [{"name": "main"}, {"name": "side"}]}
pod = partial(objects.pod, spec=SPEC)


def condition(kind: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": "False", "message": message}


def status(name: str = "main", *, last: dict[str, Any] | None = None, **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state} | ({"lastState": last} if last else {})


UNPLACED = pod(node="", conditions=[condition("PodScheduled", NO_ROOM)])
MAKING = pod(
    conditions=[condition("Ready", "containers with unready status: [main]")],
    containerStatuses=[status(waiting={"reason": "ContainerCreating"})],
)
LOADING = pod(
    spec=SPEC | {"initContainers": [{"name": "load"}]},
    initContainerStatuses=[status("load", running={})],
    containerStatuses=[status(waiting={"reason": "PodInitializing"})],
)


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (UNPLACED, f"no log yet (Pending): {NO_ROOM}"),
        (pod(node=""), "no log yet (Pending): it is not assigned to a node yet"),
        (pod(), "no log yet (Pending)"),
        (MAKING, "no log yet (ContainerCreating)"),
        (
            pod(containerStatuses=[status(waiting=NO_SECRET)]),
            'no log yet (CreateContainerConfigError): main: secret "a" not found',
        ),
        (LOADING, "no log yet (Init:0/1); to read the log of its init container, use -c load"),
    ],
)
def test_container_that_never_ran_has_a_reason(of: dict[str, Any], reason: str) -> None:
    assert missing_log_reason(of, None) == reason
    assert missing_log_reason(of, "main") == reason


@pytest.mark.parametrize(
    "told",
    [
        status(running={}),
        status(terminated={"exitCode": 1}),
        status(waiting={"reason": "CrashLoopBackOff"}, last={"terminated": {"exitCode": 1}}),
    ],
)
def test_container_that_ran_has_a_log(told: dict[str, Any]) -> None:
    assert missing_log_reason(pod(containerStatuses=[told]), None) == ""


def test_each_container_has_its_own_reason() -> None:
    assert missing_log_reason(LOADING, "load") == ""
    assert missing_log_reason(LOADING, "side").startswith("no log yet (Init:0/1)")


def test_unknown_container_is_left_to_the_server() -> None:
    assert missing_log_reason(UNPLACED, "another") == ""
    assert containers(LOADING) == ["main", "side", "load"]


@pytest.mark.parametrize(
    ("named", "meant", "is_said"), [(None, "main", True), ("side", "side", False), ("gone", "main", True)]
)
def test_annotation_of_a_pod_names_its_default_container(named: str | None, meant: str, *, is_said: bool) -> None:
    of = pod()
    of["metadata"]["annotations"] = {DEFAULT: named} if named else {}
    assert default_container(of) == meant
    assert bool(default_container_note([of])) == is_said


def test_pods_with_the_same_reason_share_a_sentence() -> None:
    names = [("web-0", "a"), ("web-0-1", "b"), ("web-1", "a"), ("web-2", "a")]
    assert group_by_reason(names) == ["web-0 and 2 more pods have a", "web-0-1 has b"]


def test_reason_of_the_first_pod_without_a_log_is_reported() -> None:
    runs = pod("web-1", containerStatuses=[status(running={})])
    assert waiting_for_logs([runs], None) is None
    state, text = waiting_for_logs([runs, UNPLACED, MAKING], None) or ("", "")
    assert (state, text) == ("Pending", f"web-0 has no log yet (Pending): {NO_ROOM}")
