"""Tests the values of kubectl's STATUS column, and their explanations."""

from collections.abc import Sequence

import pytest

from kuberuntime.objects import podstate
from kuberuntime.objects.meta import JSONObject


def pod(
    phase: str = "Running", *, containers: object = (), init: Sequence[JSONObject] = (), **more: object
) -> JSONObject:
    initial = [{"name": status["name"]} for status in init]
    return {
        "metadata": more.pop("metadata", {}),
        "spec": {"containers": [{"name": "main"}], "initContainers": initial, **more.pop("spec", {})},  # type: ignore[dict-item]
        "status": {
            "phase": phase,
            "containerStatuses": list(containers),  # type: ignore[call-overload]
            "initContainerStatuses": list(init),
            **more,
        },
    }


def container(name: str = "main", *, ready: bool = False, restarts: int = 0, **state: object) -> JSONObject:
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (pod("Pending"), "Pending"),
        ({"status": {}}, "Unknown"),
        (pod(containers=[container(running={}, ready=True)]), "Running"),
        (pod(containers=[container(waiting={"reason": "CrashLoopBackOff"})]), "CrashLoopBackOff"),
        (pod(containers=[container(terminated={"reason": "Error", "exitCode": 1})]), "Error"),
        (pod(containers=[container(terminated={"exitCode": 3})]), "ExitCode:3"),
        (pod(containers=[container(terminated={"exitCode": 137, "signal": 9})]), "Signal:9"),
        (pod("Failed", reason="Evicted"), "Evicted"),
        (pod("Pending", init=[container("a", running={})]), "Init:0/1"),
        (pod("Pending", init=[container("a", terminated={"exitCode": 0}), container("b", running={})]), "Init:1/2"),
        (pod("Pending", init=[container("a", terminated={"exitCode": 2, "reason": "Error"})]), "Init:Error"),
        (pod("Pending", init=[container("a", waiting={"reason": "CrashLoopBackOff"})]), "Init:CrashLoopBackOff"),
        (pod("Pending", init=[container("a", waiting={"reason": "PodInitializing"})]), "Init:0/1"),
        (pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), "Terminating"),
        (pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, reason="NodeLost"), "Unknown"),
    ],
)
def test_state_is_the_most_specific_reason(given: JSONObject, word: str) -> None:
    assert podstate.state(given) == word


def test_pod_with_a_completed_container_is_not_completed() -> None:
    containers = [container("a", running={}, ready=True), container("b", terminated={"reason": "Completed"})]
    assert podstate.state(pod(containers=containers)) == "NotReady"
    ready = pod(containers=containers, conditions=[{"type": "Ready", "status": "True"}])
    assert podstate.state(ready) == "Running"


def test_started_sidecar_does_not_count_as_initialization() -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    status = {**container("proxy", running={}, ready=True, restarts=2), "started": True}
    given = pod(init=[status], containers=[container(running={}, ready=True)], spec={"initContainers": [sidecar]})
    assert podstate.state(given) == "Running"
    assert podstate.restart_count(given) == 2
    assert podstate.ready_containers(given) == (2, 2)


def test_pod_without_status_has_no_ready_container() -> None:
    assert podstate.ready_containers({"spec": {"containers": [{"name": "main"}]}}) == (0, 1)


def test_scheduling_gates_are_shown() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
    assert podstate.state(pod("Pending", conditions=[condition])) == "SchedulingGated"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (pod(conditions=[{"type": "Ready", "status": "True"}]), ""),
        (
            pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]),
            "0/1 nodes",
        ),
        (
            pod(containers=[container(waiting={"reason": "X", "message": "no such image"})]),
            "main: no such image",
        ),
        (
            pod(containers=[container(terminated={"exitCode": 3, "reason": "Error"})]),
            "main: Error (exit code 3)",
        ),
        (
            pod(
                containers=[container(terminated={"exitCode": 1, "reason": "Error", "message": "Traceback:\n boom\n"})]
            ),
            "main: last line: boom (Error, exit code 1)",
        ),
        (
            pod(conditions=[{"type": "Ready", "status": "False", "message": "containers with unready status: [main]"}]),
            "containers with unready status: [main]",
        ),
        (
            pod(
                containers=[
                    container(waiting={"reason": "CrashLoopBackOff", "message": "back-off 10s"})
                    | {"lastState": {"terminated": {"exitCode": 2, "reason": "Error"}}}
                ]
            ),
            "main: Error (exit code 2); waiting to be restarted",
        ),
        (pod("Failed", message="evicted"), "evicted"),
        (pod(), ""),
    ],
)
def test_unready_pod_has_a_reason(given: JSONObject, sentence: str) -> None:
    assert podstate.waiting_reason(given) == sentence


def test_restarts_of_init_containers_count_during_initialization() -> None:
    init = [container("a", terminated={"exitCode": 0}, restarts=1), container("b", running={}, restarts=2)]
    later = container("c", restarts=4)
    assert podstate.restart_count(pod("Pending", init=[*init, later], containers=[container(restarts=8)])) == 3


def test_running_and_succeeded_containers_have_no_reason() -> None:
    assert podstate.state(pod(containers=[container(ready=True)])) == "Running"
    done = pod(containers=[container(terminated={"exitCode": 0})])
    assert podstate.waiting_reason(done) == ""


def test_ready_pod_does_not_stay_ready_during_its_deletion() -> None:
    ready = {"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert podstate.stays_ready(ready)
    assert not podstate.stays_ready(ready | {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert not podstate.stays_ready({"metadata": {}})


DELETED = {"deletionTimestamp": "2026-01-01T00:00:40Z", "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize(
    ("code", "second", "sentence"),
    [
        (143, 10, "ending"),
        (1, 12, "ending"),
        (1, 10, "main: Error (exit code 1)"),
        (143, 9, "main: Error (exit code 143)"),
    ],
    ids=["by its signal", "later with an error", "with an error before", "by an earlier signal"],
)
def test_deleted_pod_is_terminating_unless_it_failed_before(code: int, second: int, sentence: str) -> None:
    """The deletion was requested at second 10."""
    run = {"exitCode": code, "reason": "Error", "finishedAt": f"2026-01-01T00:00:{second:02}Z"}
    assert podstate.waiting_reason(pod(metadata=DELETED, containers=[container(terminated=run)])) == sentence
