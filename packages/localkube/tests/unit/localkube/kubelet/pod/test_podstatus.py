"""Tests how the pod status is computed from container states."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.kubeletpods import container, pod, status_of
from tests.unit.localkube.kubelet.pods import NODE, NOW, after, deleted, ended, launched, running, set_up, waiting

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod import podstatus, state
from localkube.kubelet.pod.state import ContainerState, Phase, PodState, Waiting
from localkube.kubelet.processes.runner import Exit

INIT = pod(initContainers=[container("init")])


def build(found: JSONObject, current: PodState) -> JSONObject:
    return {"metadata": found["metadata"], "status": podstatus.build(found, current, after(5), NODE)}


def condition(found: JSONObject, kind: str) -> tuple[str, str, str]:
    entry = meta.find_condition(found, kind) or {}
    return entry.get("status", ""), entry.get("reason", ""), entry.get("message", "")


@pytest.mark.parametrize(
    ("fields", "containers", "expected"),
    [
        ({}, [waiting()], "Pending"),
        ({}, [running()], "Running"),
        ({}, [ended(0)], "Running"),
        ({}, [ended(1)], "Running"),
        ({"restartPolicy": "OnFailure"}, [ended(0)], "Succeeded"),
        ({"restartPolicy": "OnFailure"}, [ended(1)], "Running"),
        ({"restartPolicy": "Never"}, [ended(0)], "Succeeded"),
        ({"restartPolicy": "Never"}, [ended(3)], "Failed"),
        ({"initContainers": [container("init")]}, [running("init")], "Pending"),
        ({"initContainers": [container("init")]}, [ended(1, "init")], "Pending"),
        ({"initContainers": [container("init")], "restartPolicy": "Never"}, [ended(1, "init")], "Failed"),
        ({"initContainers": [container("init")]}, [ended(0, "init"), running()], "Running"),
    ],
)
def test_phase_follows_the_containers(fields: JSONObject, containers: list[ContainerState], expected: str) -> None:
    found = pod(**fields)
    assert podstatus.pod_phase(found, set_up(found, *containers)) == expected


def test_pod_stays_running_during_a_back_off() -> None:
    crashed = state.record_delay(ended(1), Waiting(state.CRASH_LOOP), after(10))
    assert podstatus.pod_phase(pod(), set_up(pod(), crashed)) == "Running"
    assert podstatus.pod_phase(pod(), set_up(pod(), state.record_start(crashed))) == "Running"


def test_pod_with_an_unstarted_container_is_pending() -> None:
    two = pod(container("a"), container("b"))
    assert podstatus.pod_phase(two, set_up(two, running("a"))) == "Pending"


def test_pod_completes_only_after_its_sidecars() -> None:
    found = pod(initContainers=[container("proxy", restartPolicy="Always")], restartPolicy="Never")
    proxy = running("proxy", is_sidecar=True)
    assert podstatus.pod_phase(found, set_up(found, proxy, ended(0))) == "Running"
    stopped = state.record_exit(proxy, Exit(143), "", NOW)
    assert podstatus.pod_phase(found, set_up(found, stopped, ended(0))) == "Succeeded"


def test_deleted_pod_has_the_result_of_its_containers() -> None:
    assert podstatus.pod_phase(deleted(pod()), set_up(pod(), ended(0))) == "Succeeded"
    assert podstatus.pod_phase(deleted(pod()), set_up(pod(), ended(143))) == "Failed"


def test_failed_pod_has_reason_and_message() -> None:
    failed = set_up(pod(), ended(143), failure=Waiting("DeadlineExceeded", "too long"))
    found = meta.status(build(pod(), failed))
    assert (found["phase"], found["reason"], found["message"]) == ("Failed", "DeadlineExceeded", "too long")


def test_ready_pod_has_all_conditions_and_addresses() -> None:
    found = build(pod(), set_up(pod(), running()))
    kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"]
    assert [condition(found, kind) for kind in kinds] == [("True", "", "")] * 4
    assert {key: meta.status(found)[key] for key in ("podIP", "podIPs", "hostIP", "startTime")} == {
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "hostIP": "127.0.0.1",
        "startTime": "2026-03-01T12:00:00Z",
    }
    assert status_of(found) == {
        "name": "main",
        "state": {"running": {"startedAt": "2026-03-01T12:00:00Z"}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": "any:1",
        "imageID": "host://",
        "started": True,
        "containerID": "process://id-main",
        "resources": {},
    }


def test_unready_containers_are_named() -> None:
    two = pod(container("a"), container("b"))
    probed = state.record_running(launched("b"), frozenset({"readiness"}), is_sidecar=False)
    found = build(two, set_up(two, running("a"), probed))
    expected = ("False", "ContainersNotReady", "containers with unready status: [b]")
    assert condition(found, "Ready") == condition(found, "ContainersReady") == expected


def test_containers_behind_an_init_container_are_initializing() -> None:
    found = build(INIT, set_up(INIT, running("init")))
    assert status_of(found)["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert condition(found, "Initialized")[2] == "containers with incomplete status: [init]"
    done = build(INIT, set_up(INIT, ended(0, "init")))
    assert status_of(done)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert status_of(done, "init")["ready"] is True


def test_volume_problem_is_shown() -> None:
    found = build(pod(), replace(state.initial_state(pod(), NOW), problem="volumes: no"))
    assert status_of(found)["state"] == {"waiting": {"reason": "ContainerCreating", "message": "volumes: no"}}
    assert condition(found, "PodReadyToStartContainers")[0] == "False"


def test_container_in_back_off_shows_its_last_state() -> None:
    shown = podstatus.backoff_waiting(pod(metadata={"uid": "u1"}), "main", timedelta(seconds=20))
    crashed = state.record_delay(ended(3), shown, after(20))
    found = status_of(build(pod(), set_up(pod(), crashed)))
    message = "back-off 20s restarting failed container=main pod=web-0_default(u1)"
    assert found["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    assert found["lastState"]["terminated"]["exitCode"] == 3
    assert found["ready"] is False


def test_container_id_is_kept_until_the_next_start() -> None:
    crashed = state.record_delay(ended(3), state.Waiting("CrashLoopBackOff", ""), after(20))
    again = state.record_start(crashed)
    assert [status_of(build(pod(), set_up(pod(), one)))["containerID"] for one in (crashed, again)] == [
        "process://id-main",
        "process://id-main",
    ]


def test_terminated_state_has_code_signal_reason_and_times() -> None:
    killed = state.record_exit(running(), Exit(137, 9), "last words", after(3))
    assert status_of(build(pod(), set_up(pod(), killed)))["state"]["terminated"] == {
        "exitCode": 137,
        "signal": 9,
        "reason": "Error",
        "message": "last words",
        "startedAt": "2026-03-01T12:00:00Z",
        "finishedAt": "2026-03-01T12:00:03Z",
        "containerID": "process://id-main",
    }


def test_restarts_are_counted_and_the_last_state_is_kept() -> None:
    again = state.record_running(state.record_launch(ended(1), "id-2", "", after(1)), frozenset(), is_sidecar=False)
    found = status_of(build(pod(), set_up(pod(), again)))
    assert (found["restartCount"], found["lastState"]["terminated"]["exitCode"]) == (1, 1)


def test_foreign_conditions_and_unchanged_times_are_kept() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-03-01T11:00:00Z"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T11:30:00Z"}
    found = {**pod(), "status": {"conditions": [scheduled, ready], "nominatedNodeName": "x"}}
    built = build(found, set_up(found, running()))
    assert meta.find_condition(built, "PodScheduled") == scheduled
    assert meta.find_condition(built, "Ready") == ready
    assert (meta.find_condition(built, "Initialized") or {})["lastTransitionTime"] == "2026-03-01T12:00:05Z"
    assert meta.status(built)["nominatedNodeName"] == "x"


def test_readiness_gate_delays_the_pod_but_not_its_containers() -> None:
    found = pod(readinessGates=[{"conditionType": "example.com/ready"}])
    built = build(found, set_up(found, running()))
    assert condition(built, "ContainersReady")[0] == "True"
    assert condition(built, "Ready")[:2] == ("False", "ReadinessGatesNotReady")
    opened = {**found, "status": {"conditions": [{"type": "example.com/ready", "status": "True"}]}}
    assert condition(build(opened, set_up(opened, running())), "Ready")[0] == "True"


def test_completed_pod_is_not_ready() -> None:
    found = pod(restartPolicy="Never")
    assert condition(build(found, set_up(found, ended(0))), "Ready") == ("False", "PodCompleted", "")
    assert condition(build(found, set_up(found, ended(0))), "Initialized") == ("True", "PodCompleted", "")
    assert condition(build(found, set_up(found, ended(1))), "Ready") == ("False", "PodFailed", "")


def test_stubs_are_named_in_their_own_condition() -> None:
    stub = replace(running(), image_id="stub://vllm/vllm-openai:v1")
    found = build(pod(), set_up(pod(), stub))
    assert condition(found, "Stub") == ("True", "ImageNotRunnable", "replaced by the built-in stub server: main")
    assert status_of(found)["imageID"] == "stub://vllm/vllm-openai:v1"


def test_stopping_container_counts_as_running() -> None:
    found = status_of(build(pod(), set_up(pod(), state.record_stop(running(), after(30), ""))))
    assert "running" in found["state"]
    assert found["ready"] is True


def test_failed_start_has_exit_code_128() -> None:
    failed = state.record_start_failure(state.record_start(waiting()), "exec: no such file", NOW)
    assert failed.phase is Phase.TERMINATED
    found = status_of(build(pod(), set_up(pod(), failed)))["state"]["terminated"]
    assert (found["exitCode"], found["reason"], found["message"]) == (128, "StartError", "exec: no such file")
